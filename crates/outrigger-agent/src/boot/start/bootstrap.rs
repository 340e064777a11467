//! The parts of a start that exist before anything runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_config::Loaded;
use outrigger_config::settings::Sandbox;
use outrigger_mcp::McpServers;
use outrigger_permissions::deny_policy::DenyPolicy;
use outrigger_permissions::workspace_trust::WorkspaceTrust;
use outrigger_permissions::{command_sandbox, folder_trust, home_files, reserved_paths};
use outrigger_plugins::{Snapshot, answered, keep_programs, may_be_fetched};
use outrigger_protocol::session::Project;
use outrigger_sandbox::{SandboxOverrides, Spawner};
use outrigger_store::Store;
use outrigger_workspace::ProjectLocation;
use tokio::task::JoinSet;

use super::helpers::{Helpers, Owner};
use crate::boot::flags;
use crate::boot::options::{Boot, Shared};
use crate::error::AgentError;
use crate::plugin_api::command_hooks::{self, FoundHooks};
use crate::plugin_api::host_bridge::Bridge;
use crate::plugin_api::plugin_admission;
use crate::session::projects;
use outrigger_stdx::clock::now_ms;

/// The folder, its configuration, the store, the spawners, and the plugins that may run.
pub(super) struct Bootstrap {
    pub(super) boot: Boot,
    pub(super) location: ProjectLocation,
    pub(super) project: Project,
    /// As read from the files; from [`Self::run_config_hooks`] on, as changed by plugins.
    pub(super) config: Loaded,
    pub(super) store: Store,
    /// Starts processes that the audit records and that cannot see what the machine policy denies.
    pub(super) spawner: Spawner,
    /// Like `spawner`, for commands, which may reach the hosts of `tools.hosts`.
    pub(super) commands_spawner: Spawner,
    /// Helper programs of the model that are not its commands: MCP servers, language servers, formatters.
    pub(super) helpers: Helpers,
    /// Sandboxes of what plugins contribute; used by `helpers`.
    pub(super) sandboxes: SandboxOverrides,
    pub(super) workspace_trust: Option<Arc<WorkspaceTrust>>,
    /// Which plugins should run.
    pub(super) admitted: Snapshot,
    /// Command hooks; taken when they are loaded.
    pub(super) hooks: Option<FoundHooks>,
    /// Project files that trusted settings execute; they are read-only while the agent runs.
    pub(super) kept_programs: Vec<PathBuf>,
    /// Connects plugin processes to the agent once it exists.
    pub(super) bridge: Arc<Bridge>,
}

impl Bootstrap {
    /// Reads the configuration, opens the store and decides which plugins may run. No plugin is started.
    ///
    /// # Errors
    /// A configuration or store that cannot be used, settings that a sandboxed process changed.
    pub(super) async fn prepare(mut boot: Boot) -> Result<Self, AgentError> {
        // The thread that starts processes tries out what the kernel allows while the configuration is read.
        drop(Spawner::new()?);
        let location = ProjectLocation::find(&boot.directory);
        let mut config = load_config(&mut boot, &location).await?;
        let Shared { store, spawner } = match boot.shared.take() {
            Some(shared) => shared,
            None => Shared::open(&boot.folders)?,
        };
        flags::record(&config, &store).await;
        reserved_paths::make(&boot.folders);
        outrigger_audit::prepare(&store, &config, &boot.env);
        let spawner = outrigger_audit::recorded(&store, spawner);
        let spawner = DenyPolicy::of(&config, &location).kept_by(spawner);
        let workspace_trust = WorkspaceTrust::begin(&boot, &config, &location).await?;
        let home = (config.settings.sandbox != Sandbox::Off).then_some(&*boot.folders.home);
        let project = PendingProject::find(&location, &spawner, &store, home);
        let admitted = plugin_admission::decide(&store, &mut config, &boot.folders);
        let runs_plugins = !admitted.to_load(&config).0.is_empty();
        if let Some(trust) = workspace_trust.as_ref().filter(|_| runs_plugins) {
            trust.will_run().await?;
        }
        let hooks = FoundHooks::find(&boot, &config);
        let mut kept_programs = config.kept_programs(hooks.executed());
        kept_programs.extend(command_sandbox::programs_of_project(&config, &location));
        keep_programs(&location.worktree, kept_programs.clone());
        let sandboxes = SandboxOverrides::default();
        home_files::check(&boot.folders, &config.settings.tools.secrets);
        let owner = Owner {
            config: &config,
            location: &location,
            folders: &boot.folders,
            store: &store,
            trust: workspace_trust.as_ref(),
        };
        let project = project.get().await;
        Ok(Self {
            helpers: Helpers::new(&owner, &spawner, &sandboxes),
            commands_spawner: command_sandbox::network::spawner(&spawner, &config, &store),
            bridge: Arc::new(Bridge::default()),
            boot,
            location,
            project,
            config,
            store,
            spawner,
            sandboxes,
            workspace_trust,
            admitted,
            hooks: Some(hooks),
            kept_programs,
        })
    }

    /// Starts the configured MCP servers in the background.
    pub(super) fn start_mcp_servers(&self) -> McpServers {
        crate::tools::mcp::start(&self.boot, &self.owner(), &self.helpers)
    }

    /// Returns the owner of the helpers.
    pub(super) fn owner(&self) -> Owner<'_> {
        Owner {
            config: &self.config,
            location: &self.location,
            folders: &self.boot.folders,
            store: &self.store,
            trust: self.workspace_trust.as_ref(),
        }
    }

    /// Undoes what [`Self::prepare`] began if the start fails.
    pub(super) async fn abandon(self) {
        if let Some(trust) = &self.workspace_trust {
            trust.end().await;
        }
    }
}

/// The project of a folder, for which git is asked while the agent starts. Dropped, it ends git.
struct PendingProject(JoinSet<Project>);

impl PendingProject {
    /// Asks for the project that `location` is in. The sandbox is off without `home`.
    fn find(
        location: &ProjectLocation,
        spawner: &Spawner,
        store: &Store,
        home: Option<&Path>,
    ) -> Self {
        let (location, spawner, store) = (location.clone(), spawner.clone(), store.clone());
        let home = home.map(Path::to_path_buf);
        let mut task = JoinSet::new();
        task.spawn(async move {
            let project = location
                .project(&spawner, &store, home.as_deref(), now_ms())
                .await;
            projects::remember(&store, project).await
        });
        Self(task)
    }

    /// Waits for it. A panic of the task is a panic here.
    async fn get(self) -> Project {
        let found = self.0.join_all().await;
        found.into_iter().next().unwrap_or_default()
    }
}

/// Loads the configuration with the project settings that the user trusts; logs its problems.
async fn load_config(boot: &mut Boot, location: &ProjectLocation) -> Result<Loaded, AgentError> {
    let config = boot.load(location)?;
    let (ask, may_ask) = (boot.trust_folder.as_ref(), boot.consent.as_ref());
    let download = may_be_fetched(&config.settings, &boot.runtimes(), may_ask);
    let (config, agreed) = folder_trust::settle(boot, ask, location, config, download).await?;
    boot.consent = answered(boot.consent.take(), agreed);
    if let Some(untrusted) = folder_trust::notice(&config) {
        tracing::warn!("[config] {untrusted}");
    }
    for problem in &config.problems {
        tracing::warn!("[config] {problem}");
    }
    command_hooks::check(boot, &config)?;
    outrigger_net::forbid(&config.settings.forbid.hosts);
    Ok(config)
}
