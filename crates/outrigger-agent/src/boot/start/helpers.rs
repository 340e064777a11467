//! Helper programs of the model other than its commands (formatters, language servers, MCP servers), and the
//! sandbox of each.

use std::sync::Arc;

use outrigger_config::Loaded;
use outrigger_config::settings::Profile;
use outrigger_lsp::{Lsp, MaySeeFn, Programs};
use outrigger_mcp_tools::{ServerLauncher, Spawners};
use outrigger_permissions::command_sandbox::{self, Process, Temporary, network};
use outrigger_permissions::helper_sandbox::HelperSandbox;
use outrigger_permissions::project_programs::ProjectPrograms;
use outrigger_permissions::sandbox_policy;
use outrigger_permissions::workspace_trust::WorkspaceTrust;
use outrigger_sandbox::{Loopback, SandboxOverrides, Spawner};
use outrigger_store::Store;
use outrigger_workspace::formatters::Formatters;
use outrigger_workspace::{Folders, ProjectLocation};

use crate::tools::lsp;

/// How helpers are started.
pub(crate) struct Helpers {
    /// Runs as the user: denied files are masked, and what plugins contribute runs in its own sandboxes.
    pub(crate) spawner: Spawner,
    sandbox: Arc<HelperSandbox>,
    /// Decides which project programs may be started.
    pub(super) programs: Arc<ProjectPrograms>,
    /// Decides in which sandbox MCP servers start.
    pub(crate) launcher: Arc<ServerLauncher>,
    /// Folder for temporary files of commands and of everything in their sandbox.
    pub(super) temporary: Arc<Temporary>,
    /// Services of this machine that commands and helpers can reach.
    pub(super) loopback: Loopback,
}

/// The owner of helpers.
pub(crate) struct Owner<'a> {
    pub(crate) config: &'a Loaded,
    pub(crate) location: &'a ProjectLocation,
    pub(super) folders: &'a Folders,
    pub(crate) store: &'a Store,
    pub(super) trust: Option<&'a Arc<WorkspaceTrust>>,
}

impl Helpers {
    /// Creates the helpers of an agent. `overrides` are the sandboxes of what plugins contribute.
    pub(super) fn new(owner: &Owner<'_>, spawner: &Spawner, overrides: &SandboxOverrides) -> Self {
        let Owner {
            config,
            location,
            folders,
            store,
            trust,
        } = *owner;
        let spawner = sandbox_policy::spawner(spawner, config, location, folders, trust);
        let spawner = spawner.with_overrides(overrides.clone());
        let temporary = Arc::new(Temporary::default());
        let loopback = command_sandbox::loopback(config);
        let sandbox = HelperSandbox::new(config, location, folders, &temporary, &loopback);
        let programs = ProjectPrograms::new(config, location, folders);
        let under = |profile| {
            let confined = sandbox.confine(&spawner, profile, Process::Plugin);
            network::spawner(&confined, config, store)
        };
        let spawners = Spawners {
            workspace_write: under(Profile::WorkspaceWrite),
            read_only: under(Profile::ReadOnly),
            open: spawner.clone(),
            sandbox: Arc::clone(&sandbox),
        };
        let launcher =
            ServerLauncher::new(config, location, folders, Arc::clone(&programs), spawners);
        Self {
            spawner,
            sandbox,
            programs,
            launcher,
            temporary,
            loopback,
        }
    }

    pub(super) fn formatters(&self, owner: &Owner<'_>, env: lsp::Environment) -> Formatters {
        let spawner = self.confined(owner, Process::Command);
        let configured = owner.config.config.formatter.as_ref();
        let programs = self.programs("formatter");
        Formatters::new(configured, owner.location, &spawner, env).with_programs(programs)
    }

    /// Returns the language servers; none is started yet. `may_see` decides which files are sent to them.
    pub(super) fn language_servers(
        &self,
        owner: &Owner<'_>,
        env: lsp::Environment,
        may_see: MaySeeFn,
    ) -> Lsp {
        Lsp::new(
            owner.config.config.lsp.as_ref(),
            outrigger_lsp::Options {
                spawner: self.confined(owner, Process::Plugin),
                directory: owner.location.directory.clone(),
                worktree: owner.location.worktree.clone(),
                env,
                limits: outrigger_lsp::Limits::default(),
                programs: self.programs("lsp"),
                may_see,
            },
        )
    }

    /// Returns a spawner that starts everything in the command sandbox, with the hosts that commands can reach.
    fn confined(&self, owner: &Owner<'_>, process: Process) -> Spawner {
        let profile = self.sandbox.profile();
        let confined = self.sandbox.confine(&self.spawner, profile, process);
        network::spawner(&confined, owner.config, owner.store)
    }

    /// Returns which programs of the entries below a settings key may be started.
    fn programs(&self, key: &'static str) -> Programs {
        let programs = Arc::clone(&self.programs);
        Programs {
            of_project: programs.is_trusted(),
            refusal: Arc::new(move |name, program| programs.refusal(key, name, program)),
        }
    }
}
