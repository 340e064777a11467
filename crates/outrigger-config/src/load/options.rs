//! Where the configuration is read from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::ProjectConfig;

/// Where to look. All paths are absolute.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Working directory.
    pub directory: PathBuf,
    /// Root of the repository, or `/` when there is none: looking upwards ends here.
    pub worktree: PathBuf,
    /// Home folder.
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME`, in which `opencode` and `outrigger` are.
    pub xdg_config: PathBuf,
    /// Environment; nothing is read from the process's own.
    pub env: BTreeMap<String, String>,
    /// `--pure`: no external plugins. `OPENCODE_PURE` in `env` does the same.
    pub pure: bool,
    /// The administrator's folder, whose files have the last word; `/etc/opencode` in OpenCode.
    pub managed: Option<PathBuf>,
    /// The managed policy of the machine ([`crate::policy`]).
    pub policy: PathBuf,
    /// Names of hooks that can refuse something, in every spelling: a policy requires no others. Empty: nobody knows.
    pub hooks: Vec<String>,
    /// The user's name when no file sets `username`; asked of the system when `None`.
    pub username: Option<String>,
    /// How much of the project's files counts.
    pub project: ProjectConfig,
    /// Providers of models that the user has logged in at.
    pub logins: BTreeSet<String>,
}

impl LoadOptions {
    /// Options for a working directory, with the folders that the environment names.
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

    /// The folder of the project: the root of the working tree, outside version control the working folder.
    pub(crate) fn project_folder(&self) -> &Path {
        match self.worktree.parent() {
            Some(_) => &self.worktree,
            None => &self.directory,
        }
    }
}
