//! Options for starting an agent, and the parts that agents of one process share.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_config::Loaded;
use outrigger_js::{JsRuntime, Lookup};
use outrigger_permissions::project_programs::pass_over_project;
use outrigger_plugins::Progress;
use outrigger_sandbox::Spawner;
use outrigger_sandbox::ledger::Ledger;
use outrigger_store::{OpenReport, Store};
use outrigger_workspace::{Folders, ProjectLocation};

use crate::error::AgentError;
use crate::permission::answering::Answering;
use outrigger_session_state::bus::Sink;

/// Options for starting an agent.
pub struct Boot {
    /// Project folder.
    pub directory: PathBuf,
    /// Environment, read once.
    pub env: BTreeMap<String, String>,
    /// Folders for configuration, data and caches.
    pub folders: Folders,
    /// Load no external plugins.
    pub pure: bool,
    /// Whether a plugin that fails to load fails the start (`--strict-plugins`). `None`: use the setting `strict_plugins`.
    pub strict: Option<bool>,
    /// Install the SDK for plugins that do not bundle it, if it is missing.
    pub install_modules: bool,
    /// Who answers permission questions.
    pub answering: Answering,
    /// Reports the progress of each plugin; called from any thread.
    pub progress: Arc<dyn Fn(Progress) + Send + Sync>,
    /// Asks whether a program may be fetched from npm (`js.install = "ask"`); `None`: there is no user to ask.
    pub consent: Option<outrigger_plugins::ConsentFn>,
    /// Asks whether to trust a plugin that is new in its project or has changed; `None`: there is no user to ask.
    pub trust: Option<outrigger_plugins::TrustFn>,
    /// Asks whether the settings of the folder take effect; `None`: there is no user to ask.
    pub trust_folder: Option<outrigger_permissions::folder_trust::FolderTrustFn>,
    /// Parts shared by the agents of one process; if `None`, the agent opens its own.
    pub shared: Option<Shared>,
    /// Receives every event in order, before any listener.
    pub sink: Option<Sink>,
}

/// Parts that the agents of one process share: a store has one writer, a process one ledger.
#[derive(Clone)]
pub struct Shared {
    pub(crate) store: Store,
    pub(crate) spawner: Spawner,
}

impl Shared {
    /// Opens the store and starts the spawner.
    ///
    /// # Errors
    /// A store that cannot be used, a process that cannot start others.
    pub fn open(folders: &Folders) -> Result<Self, AgentError> {
        let (store, report) = open_store(folders)?;
        tracing::debug!("[store] {report:?}");
        Ok(Self {
            store,
            spawner: spawner(folders)?,
        })
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }
}

impl Boot {
    /// Returns the default options for a folder.
    #[must_use]
    pub fn new(directory: PathBuf, env: BTreeMap<String, String>) -> Self {
        let folders = Folders::from_env(&env);
        pass_over_project(&directory, &folders.home);
        Self {
            folders,
            directory,
            env,
            pure: false,
            strict: None,
            install_modules: true,
            answering: Answering::default(),
            progress: Arc::new(|_| {}),
            consent: None,
            trust: None,
            trust_folder: None,
            shared: None,
            sink: None,
        }
    }

    /// Returns where to look for JavaScript runtimes.
    pub(super) fn runtimes(&self) -> Lookup {
        let path = |name: &str| {
            self.env
                .get(name)
                .filter(|v| !v.is_empty())
                .map(PathBuf::from)
        };
        Lookup {
            configured: None,
            bun: path("OUTRIGGER_BUN"),
            node: path("OUTRIGGER_NODE"),
            path: self.env.get("PATH").cloned().unwrap_or_default().into(),
            data: Some(self.folders.data.clone()),
        }
    }

    /// The JavaScript runtime that plugins would run under.
    ///
    /// # Errors
    /// What to do when there is none.
    pub fn js_runtime(&self) -> Result<String, String> {
        JsRuntime::find(&self.runtimes())
            .map(|r| describe(&r))
            .map_err(|e| e.to_string())
    }

    /// Reads the user's own configuration files only, in OpenCode's form.
    ///
    /// # Errors
    /// Those of the configuration.
    pub fn load_global(&self) -> Result<serde_json::Value, AgentError> {
        let options = self.options(&self.directory, &self.directory);
        Ok(outrigger_config::load_global(&options)?)
    }

    /// The same without the secrets in it.
    ///
    /// # Errors
    /// Those of the configuration.
    pub fn load_global_redacted(&self) -> Result<serde_json::Value, AgentError> {
        let options = self.options(&self.directory, &self.directory);
        Ok(outrigger_config::load_global_redacted(&options)?)
    }

    fn options(&self, directory: &Path, worktree: &Path) -> outrigger_config::LoadOptions {
        let mut options = outrigger_config::LoadOptions::new(
            directory.to_owned(),
            worktree.to_owned(),
            self.folders.home.clone(),
            self.env.clone(),
        );
        options.xdg_config.clone_from(&self.folders.config);
        options.logins = self.credentials().providers();
        options
    }

    /// Reads the configuration only.
    ///
    /// # Errors
    /// Those of the configuration.
    pub fn load(&self, location: &ProjectLocation) -> Result<Loaded, AgentError> {
        Ok(outrigger_config::load(&self.config_options(location))?)
    }

    /// Returns the options for reading the configuration of a folder.
    pub(crate) fn config_options(
        &self,
        location: &ProjectLocation,
    ) -> outrigger_config::LoadOptions {
        let mut options = self.options(&location.directory, &location.worktree);
        options.pure = self.pure;
        options.hooks = outrigger_plugins::refusing_hooks();
        options.project = outrigger_permissions::folder_trust::extent(
            &self.env,
            &self.folders,
            location,
            &options,
        );
        options
    }
}

/// Opens the store in its folder, which only this user can access regardless of the umask: it holds copies of project files and
/// the list of trusted content.
fn open_store(folders: &Folders) -> Result<(Store, OpenReport), AgentError> {
    std::fs::create_dir_all(&folders.data)
        .and_then(|()| private(&folders.data))
        .map_err(|e| AgentError::Folder {
            path: folders.data.display().to_string(),
            reason: e.to_string(),
        })?;
    Ok(Store::open(&folders.store())?)
}

/// Removes the permissions of other users from a folder.
fn private(folder: &Path) -> std::io::Result<()> {
    let mode = folder.metadata()?.permissions().mode();
    match mode & 0o077 {
        0 => Ok(()),
        _ => std::fs::set_permissions(folder, Permissions::from_mode(mode & 0o700)),
    }
}

/// Creates the spawner of this process. First ends the processes that dead hosts left running (their ledgers list them).
fn spawner(folders: &Folders) -> Result<Spawner, AgentError> {
    let ledger = Ledger::open(folders.data.join("processes"))?;
    for swept in ledger.sweep()? {
        tracing::warn!(
            "[sandbox] ended {} processes of {} that a crashed host left behind",
            swept.killed,
            swept.what
        );
    }
    Ok(Spawner::new()?.with_ledger(ledger))
}

pub(crate) fn describe(runtime: &JsRuntime) -> String {
    let name = match runtime.kind {
        outrigger_js::RuntimeKind::Bun => "Bun",
        outrigger_js::RuntimeKind::Node => "Node",
    };
    format!("{name} at {}", runtime.path.display())
}
