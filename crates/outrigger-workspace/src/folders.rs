//! The folders of a user in which an agent stores data.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// A user's folders. OpenCode's own folders are only read, except that an empty list of keys is created if there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folders {
    /// The user's home.
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME`; OpenCode's configuration is in `opencode` under it, ours in `outrigger`.
    pub config: PathBuf,
    /// Our data: the store, locks, full output of truncated results, the plugins' private homes.
    pub data: PathBuf,
    /// Our cache: installed plugins.
    pub cache: PathBuf,
}

impl Folders {
    /// Returns the XDG folders of this environment.
    #[must_use]
    pub fn from_env(env: &BTreeMap<String, String>) -> Self {
        let absolute = |name: &str| {
            env.get(name)
                .filter(|v| v.starts_with('/'))
                .map(PathBuf::from)
        };
        let home = absolute("HOME").unwrap_or_else(|| PathBuf::from("/"));
        let xdg =
            |name: &str, fallback: &str| absolute(name).unwrap_or_else(|| home.join(fallback));
        Self {
            config: xdg("XDG_CONFIG_HOME", ".config"),
            data: xdg("XDG_DATA_HOME", ".local/share").join("outrigger"),
            cache: xdg("XDG_CACHE_HOME", ".cache").join("outrigger"),
            home,
        }
    }

    /// Returns the store's file.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.data.join("outrigger.db")
    }

    /// Returns the user's own `outrigger.toml`.
    #[must_use]
    pub fn settings(&self) -> PathBuf {
        self.config.join("outrigger/outrigger.toml")
    }
}
