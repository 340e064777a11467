//! The sandbox of programs that work for the model without being its commands: formatters, language servers, MCP servers of a
//! project (issue 18). What they run lies in the project, or is named there, so they get what a shell command gets.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use outrigger_config::Loaded;
use outrigger_config::settings::Profile;
use outrigger_sandbox::{Loopback, Policy, SandboxError, Spawner};
use outrigger_workspace::{Folders, ProjectLocation};

use crate::command_sandbox::{Around, Process, Temporary};

/// What that sandbox is made of.
#[derive(Debug)]
pub struct HelperSandbox {
    config: Loaded,
    place: ProjectLocation,
    folders: Folders,
    /// Of the agent, with which it goes.
    temporary: Weak<Temporary>,
    loopback: Loopback,
}

impl HelperSandbox {
    /// That of an agent: with the folder for temporary files and the services of its commands.
    pub fn new(
        config: &Loaded,
        place: &ProjectLocation,
        folders: &Folders,
        temporary: &Arc<Temporary>,
        loopback: &Loopback,
    ) -> Arc<Self> {
        Arc::new(Self {
            config: config.clone(),
            place: place.clone(),
            folders: folders.clone(),
            temporary: Arc::downgrade(temporary),
            loopback: loopback.clone(),
        })
    }

    /// What `tools.sandbox` says.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.config.settings.tools.sandbox
    }

    /// A handle whose processes are in this sandbox under a profile, where plugins did not bring them
    /// ([`outrigger_sandbox::SandboxOverrides`]). `spawner` covers already what rules deny.
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

    /// A folder in which npm keeps what it fetches for `npx`, in that for temporary files, since a sandboxed program does not put
    /// programs into the home folder. What npm has fetched before is taken from there. Blocking.
    #[must_use]
    pub fn npm_cache(&self) -> Option<PathBuf> {
        let folder = self.temporary.upgrade()?.folder().ok()?.join("npm");
        let made = fs::create_dir_all(&folder);
        let fetched = self.folders.home.join(".npm/_cacache");
        let link = folder.join("_cacache");
        if made.is_ok() && fetched.is_dir() && link.symlink_metadata().is_err() {
            // Without it npm fetches all anew.
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
        let around = Around {
            config: &self.config,
            place: &self.place,
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
