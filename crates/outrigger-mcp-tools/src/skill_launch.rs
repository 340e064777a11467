//! How the servers of skills start: those of a plugin's skill in the sandbox of the plugin, all others as configured servers do.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_mcp::{Launch, LaunchRefusal, LaunchRequest, Launcher, Options, Placement};
use outrigger_sandbox::{SandboxOverride, SandboxOverrides, Spawner};
use outrigger_stdx::sync::lock;

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
    /// Starts a skill's server in this sandbox from now on.
    pub(crate) fn sandbox(&self, server: &str, skill: &Path, own: Option<SandboxOverride>) {
        lock(&self.origins).insert(server.to_owned(), skill.to_owned());
        if let Some(own) = own {
            self.sandboxes.set(label(server), own);
        }
    }

    /// Returns whether a server of another skill runs under this name, and one of them in a plugin's sandbox: neither gets the
    /// process or the rights of the other, even if both describe the same server.
    pub(crate) fn is_of_another(&self, server: &str, skill: &Path, is_of_plugin: bool) -> bool {
        let origin = lock(&self.origins).get(server).cloned();
        let is_sandboxed = || self.sandboxes.of(&label(server)).is_some();
        origin.is_some_and(|it| it != skill) && (is_of_plugin || is_sandboxed())
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

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_sandbox::Policy;

    /// Attempt 1349 of docs/bypass/attempts.toml.
    #[test]
    fn a_server_keeps_the_sandbox_of_the_skill_that_it_comes_from() {
        let own = || SandboxOverride {
            policy: Policy::default(),
            variables: Vec::new(),
            proxy_redirect: None,
            held: Arc::new(()),
        };
        let [plugins, users, others] =
            ["/plugin/skill", "/home/skill", "/home/other"].map(Path::new);
        let held = Held::default();
        assert!(!held.is_of_another("a", plugins, true));
        held.sandbox("a", plugins, Some(own()));
        // Loaded again.
        assert!(!held.is_of_another("a", plugins, true));
        // It would run in the plugin's sandbox.
        assert!(held.is_of_another("a", users, false));
        held.sandbox("b", users, None);
        // The plugin would have the process of the user's.
        assert!(held.is_of_another("b", plugins, true));
        assert!(!held.is_of_another("b", others, false));
    }
}
