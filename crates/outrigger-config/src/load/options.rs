//! Options for loading the configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::ProjectConfig;

/// Where to look. All paths are absolute.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Working directory.
    pub directory: PathBuf,
    /// Root of the repository, or `/` if there is none: the upward search ends here.
    pub worktree: PathBuf,
    /// Home folder.
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME`, the parent folder of `opencode` and `outrigger`.
    pub xdg_config: PathBuf,
    /// Environment; the process's own is not read.
    pub env: BTreeMap<String, String>,
    /// `--pure`: no external plugins. `OPENCODE_PURE` in `env` has the same effect.
    pub pure: bool,
    /// The administrator's folder, whose files have the highest precedence; `/etc/opencode` in OpenCode.
    pub managed: Option<PathBuf>,
    /// The managed policy of the machine ([`crate::policy`]).
    pub policy: PathBuf,
    /// Names of hooks that can refuse something, in every spelling: a policy can require only these. Empty: unknown.
    pub hooks: Vec<String>,
    /// The user's name if no file sets `username`; `None`: ask the system.
    pub username: Option<String>,
    /// Which project files take effect.
    pub project: ProjectConfig,
    /// Providers of models that the user has logged in to.
    pub logins: BTreeSet<String>,
}

impl LoadOptions {
    /// Creates options for a working directory, with the folders that the environment names.
    pub fn new(
        directory: PathBuf,
        worktree: PathBuf,
        home: PathBuf,
        env: BTreeMap<String, String>,
    ) -> Self {
        let named = |name: &str| {
            env.get(name)
                .filter(|value| value.starts_with('/'))
                .map(PathBuf::from)
        };
        Self {
            xdg_config: named("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")),
            managed: Some(
                named("OPENCODE_TEST_MANAGED_CONFIG_DIR").unwrap_or_else(|| "/etc/opencode".into()),
            ),
            directory,
            worktree,
            home,
            env,
            pure: false,
            policy: crate::policy::POLICY_FILE.into(),
            hooks: Vec::new(),
            username: None,
            project: ProjectConfig::default(),
            logins: BTreeSet::new(),
        }
    }

    /// Returns the folder of the project: the root of the working tree, or outside version control the working
    /// directory.
    pub(crate) fn project_folder(&self) -> &Path {
        match self.worktree.parent() {
            Some(_) => &self.worktree,
            None => &self.directory,
        }
    }
}
