//! What works for the model without being its commands: formatters, language servers, MCP servers. Where each runs.

use std::sync::Arc;

use outrigger_config::Loaded;
use outrigger_config::settings::Profile;
use outrigger_lsp::{Lsp, Programs};
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

/// How they are started.
pub(crate) struct Helpers {
    /// As the user: what rules deny is covered, and what plugins contribute is in its own sandboxes.
    pub(crate) spawner: Spawner,
    sandbox: Arc<HelperSandbox>,
    /// Which of their programs may be started.
    pub(super) programs: Arc<ProjectPrograms>,
    /// Decides where MCP servers start.
    pub(crate) launcher: Arc<ServerLauncher>,
    /// The folder for temporary files of commands, and of what runs in their sandbox.
    pub(super) temporary: Arc<Temporary>,
    /// Services of this machine that these reach.
    pub(super) loopback: Loopback,
}

/// Whose helpers they are.
pub(crate) struct Owner<'a> {
    pub(crate) config: &'a Loaded,
    pub(crate) place: &'a ProjectLocation,
    pub(super) folders: &'a Folders,
    pub(crate) store: &'a Store,
    pub(super) trust: Option<&'a Arc<WorkspaceTrust>>,
}

impl Helpers {
    /// Those of an agent. `overrides` are the sandboxes of what plugins contribute.
    pub(super) fn new(owner: &Owner<'_>, spawner: &Spawner, overrides: &SandboxOverrides) -> Self {
        let Owner {
            config,
            place,
            folders,
            store,
            trust,
        } = *owner;
        let spawner = sandbox_policy::spawner(spawner, config, place, folders, trust);
        let spawner = spawner.with_overrides(overrides.clone());
        let temporary = Arc::new(Temporary::default());
        let loopback = command_sandbox::loopback(config);
        let sandbox = HelperSandbox::new(config, place, folders, &temporary, &loopback);
        let programs = ProjectPrograms::new(config, place, folders);
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
        let launcher = ServerLauncher::new(config, place, folders, Arc::clone(&programs), spawners);
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
        Formatters::new(configured, owner.place, &spawner, env).with_programs(programs)
    }

    /// None is started yet.
    pub(super) fn language_servers(&self, owner: &Owner<'_>, env: lsp::Environment) -> Lsp {
        Lsp::new(
            owner.config.config.lsp.as_ref(),
            outrigger_lsp::Options {
                spawner: self.confined(owner, Process::Plugin),
                directory: owner.place.directory.clone(),
                worktree: owner.place.worktree.clone(),
                env,
                limits: outrigger_lsp::Limits::default(),
                programs: self.programs("lsp"),
            },
        )
    }

    /// Starts what it starts in the sandbox of commands, with the hosts that these reach.
    fn confined(&self, owner: &Owner<'_>, process: Process) -> Spawner {
        let profile = self.sandbox.profile();
        let confined = self.sandbox.confine(&self.spawner, profile, process);
        network::spawner(&confined, owner.config, owner.store)
    }

    /// Which programs of the entries below a key of the settings may be started.
    fn programs(&self, key: &'static str) -> Programs {
        let programs = Arc::clone(&self.programs);
        Programs {
            of_project: programs.is_trusted(),
            refusal: Arc::new(move |name, program| programs.refusal(key, name, program)),
        }
    }
}
