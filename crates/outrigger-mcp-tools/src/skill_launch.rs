//! How the servers of skills start: those of a plugin's skill in the sandbox of the plugin, all others as configured servers do.

use std::path::PathBuf;
use std::sync::Arc;

use outrigger_mcp::{Launch, LaunchRefusal, LaunchRequest, Launcher, Options, Placement};
use outrigger_sandbox::{SandboxOverride, SandboxOverrides, Spawner};

use crate::skill_servers::Held;

/// Decides for the servers of a session's skills.
#[derive(Debug)]
struct SkillLauncher {
    /// Decides for the skills that no plugin contributed.
    others: Option<Arc<dyn Launcher>>,
    /// Starts processes in their sandboxes.
    spawner: Spawner,
    sandboxes: SandboxOverrides,
    directory: PathBuf,
}

fn label(server: &str) -> String {
    format!("mcp:{server}")
}

impl Held {
    /// Starts a server in this sandbox from now on.
    pub(crate) fn sandbox(&self, server: &str, own: Option<SandboxOverride>) {
        if let Some(own) = own {
            self.sandboxes.set(label(server), own);
        }
    }

    /// Returns the options of the session's servers.
    pub(crate) fn options(&self, mut options: Options) -> Options {
        options.spawner = options.spawner.with_overrides(self.sandboxes.clone());
        options.launcher = Some(Arc::new(SkillLauncher {
            others: options.launcher,
            spawner: options.spawner.clone(),
            sandboxes: self.sandboxes.clone(),
            directory: options.directory.clone(),
        }));
        options
    }
}

impl SkillLauncher {
    /// Starts it with what the request says; the spawner finds its sandbox by its label.
    fn as_requested(&self, request: &LaunchRequest) -> Launch {
        let cwd = request.cwd.as_ref().map(|cwd| self.directory.join(cwd));
        Launch {
            spawner: self.spawner.clone(),
            command: request.command.clone(),
            cwd: cwd.unwrap_or_else(|| self.directory.clone()),
            env: request.env.clone(),
            held: None,
        }
    }
}

impl Launcher for SkillLauncher {
    fn launch(&self, request: &LaunchRequest) -> Result<Launch, LaunchRefusal> {
        let is_of_plugin = self.sandboxes.of(&label(&request.server)).is_some();
        match &self.others {
            Some(others) if !is_of_plugin => others.launch(request),
            _ => Ok(self.as_requested(request)),
        }
    }

    fn placement(&self, request: &LaunchRequest) -> Option<Placement> {
        self.others.as_ref()?.placement(request)
    }
}
