//! The sandbox of helper programs of the model that are not its commands: formatters, language servers, MCP servers of a project.
//! Their code is in the project, or named there, so they get the sandbox of a shell command.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use outrigger_config::Loaded;
use outrigger_config::settings::Profile;
use outrigger_sandbox::{Loopback, Policy, SandboxError, Spawner};
use outrigger_workspace::{Folders, ProjectLocation};

use crate::command_sandbox::{Process, SandboxInput, Temporary};

/// Input of that sandbox.
#[derive(Debug)]
pub struct HelperSandbox {
    config: Loaded,
    location: ProjectLocation,
    folders: Folders,
    /// The agent's temporary folder; dropped with it.
    temporary: Weak<Temporary>,
    loopback: Loopback,
}

impl HelperSandbox {
    /// Creates it for an agent: with the temporary folder and the services of its commands.
    pub fn new(
        config: &Loaded,
        location: &ProjectLocation,
        folders: &Folders,
        temporary: &Arc<Temporary>,
        loopback: &Loopback,
    ) -> Arc<Self> {
        Arc::new(Self {
            config: config.clone(),
            location: location.clone(),
            folders: folders.clone(),
            temporary: Arc::downgrade(temporary),
            loopback: loopback.clone(),
        })
    }

    /// Returns the profile of `tools.sandbox`.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.config.settings.tools.sandbox
    }

    /// Returns a spawner whose processes run in this sandbox under a profile, unless plugins contributed them
    /// ([`outrigger_sandbox::SandboxOverrides`]). `spawner` masks already what rules deny.
    #[must_use]
    pub fn confine(
        self: &Arc<Self>,
        spawner: &Spawner,
        profile: Profile,
        process: Process,
    ) -> Spawner {
        let sandbox = Arc::clone(self);
        let base = move || sandbox.policy(profile, process);
        spawner.clone().with_base(Arc::new(base))
    }

    /// Returns a cache folder for `npx` within the temporary folder, since a sandboxed program cannot install programs into the
    /// home folder. What npm has fetched before is taken from there. Blocking.
    #[must_use]
    pub fn npm_cache(&self) -> Option<PathBuf> {
        let folder = self.temporary.upgrade()?.folder().ok()?.join("npm");
        let made = fs::create_dir_all(&folder);
        let fetched = self.folders.home.join(".npm/_cacache");
        let link = folder.join("_cacache");
        if made.is_ok() && fetched.is_dir() && link.symlink_metadata().is_err() {
            // Without it npm fetches everything again.
            let _ = std::os::unix::fs::symlink(fetched, link);
        }
        made.is_ok().then_some(folder)
    }

    fn policy(&self, profile: Profile, process: Process) -> Result<Policy, SandboxError> {
        if profile == Profile::Full {
            return Ok(Policy::open());
        }
        let temporary = self.temporary.upgrade().ok_or(SandboxError::Stopped)?;
        let folder = temporary.folder();
        let around = SandboxInput {
            config: &self.config,
            location: &self.location,
            folders: &self.folders,
            temporary: folder.map_err(|source| SandboxError::Temporary { source })?,
            loopback: self.loopback.clone(),
            process,
        };
        let mut policy = around.policy(profile, None)?;
        let homes = self.folders.data.join("plugin-homes");
        policy.hide.extend(Some(homes).filter(|it| it.exists()));
        if let Some(calls) = &mut policy.calls {
            calls.unix_sockets |= self.config.settings.tools.unix_sockets;
        }
        Ok(policy)
    }
}
