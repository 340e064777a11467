//! The folders of a user: where an agent keeps things.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where things are kept. OpenCode's own folders are only read, but for an empty list of keys that is put where there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folders {
    /// The user's home.
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME`; OpenCode's configuration is in `opencode` under it, ours in `outrigger`.
    pub config: PathBuf,
    /// Our data: the store, locks, output that was cut, the plugins' private homes.
    pub data: PathBuf,
    /// Our cache: installed plugins.
    pub cache: PathBuf,
}

impl Folders {
    /// The XDG folders of this environment.
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

    /// The store's file.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.data.join("outrigger.db")
    }

    /// The user's own `outrigger.toml`.
    #[must_use]
    pub fn settings(&self) -> PathBuf {
        self.config.join("outrigger/outrigger.toml")
    }
}
