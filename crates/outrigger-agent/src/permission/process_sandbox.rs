//! The sandbox of each process started for the model: its rules and its profile.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_config::settings::{Profile, Sandbox};
use outrigger_permissions::command_sandbox::{Process, SandboxInput};
use outrigger_permissions::deny_policy::{DenyPolicy, is_forbidden};
use outrigger_permissions::sandbox_policy::{self, ConfineError, is_enforced};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::permission::Rule;
use outrigger_sandbox::path_masks::{self, Cover, CoverWalk};
use outrigger_sandbox::{Calls, CoversFn, Policy, SandboxError};
use outrigger_workspace::{ProjectLocation, git_policy};

use crate::state::{AgentState, ProcessServices};

/// Further paths of a project that a process cannot change.
type MoreFn = fn(&ProjectLocation) -> Result<Vec<PathBuf>, SandboxError>;

/// Returns what decides which programs git starts: the `.git` file or folder of the project and of every repository in it.
/// Blocking.
fn gits(location: &ProjectLocation) -> Result<Vec<PathBuf>, SandboxError> {
    let found = path_masks::find(&location.worktree, |path, _| {
        let name = path.rsplit('/').next().unwrap_or_default();
        if name.eq_ignore_ascii_case(".git") {
            Cover::ReadOnly
        } else {
            Cover::None
        }
    })?;
    Ok(found.read_only)
}

/// The purpose of a sandbox.
struct Command<'a> {
    profile: Profile,
    /// Session that the process works for.
    session: Option<&'a SessionId>,
    more: Option<MoreFn>,
    /// Paths that it reads besides the project and the system; `None`: everything.
    reads: Option<Vec<PathBuf>>,
}

impl AgentState {
    /// Returns the sandbox of a shell command of a session under these rules; `None` if nothing is denied to it.
    ///
    /// # Errors
    /// [`ConfineError`]: the process must not be started then.
    pub(crate) async fn confine(
        &self,
        session: Option<&SessionId>,
        rules: Vec<Rule>,
    ) -> Result<Option<Policy>, ConfineError> {
        let command = Command {
            profile: self.config.settings.tools.sandbox,
            session,
            more: None,
            reads: None,
        };
        self.confine_to(command, rules).await
    }

    /// Returns the sandbox of a command that the user lets run outside its sandbox: it still hides what rules deny, and our own
    /// files.
    ///
    /// # Errors
    /// As for [`AgentState::confine`].
    pub(crate) async fn confine_outside(
        &self,
        session: &SessionId,
        rules: Vec<Rule>,
    ) -> Result<Option<Policy>, ConfineError> {
        let command = Command {
            profile: Profile::Full,
            session: Some(session),
            more: None,
            reads: None,
        };
        self.confine_to(command, rules).await
    }

    /// Returns whether a command may leave its sandbox with the user's approval: not if the machine policy requires the sandbox.
    pub(crate) fn may_leave_sandbox(&self) -> bool {
        let mut policies = self.config.policies.iter();
        !policies.any(|it| it.policy.sandbox.tools.is_some())
    }

    /// Like [`Self::confine`], for a command of a remote controller: it cannot write outside the project or into `.git`, whatever
    /// options of programs it uses (C9, 4). `reads` are the paths that it may read besides the project, the system, temporary
    /// folders and what git reads; `None`: everything.
    ///
    /// # Errors
    /// As for [`AgentState::confine`].
    pub(crate) async fn confine_bridge(
        &self,
        rules: Vec<Rule>,
        reads: Option<&[PathBuf]>,
    ) -> Result<Option<Policy>, ConfineError> {
        let home = &self.project.folders.home;
        let reads = reads.map(|named| {
            let gits = git_policy::reads(&self.project.location, home);
            named.iter().cloned().chain(gits).collect()
        });
        let profile = match self.config.settings.tools.sandbox {
            Profile::Full => Profile::WorkspaceWrite,
            narrower => narrower,
        };
        let command = Command {
            profile,
            session: None,
            more: Some(gits),
            reads,
        };
        self.confine_to(command, rules).await
    }

    /// Returns whether processes cannot see an existing file, under any of its paths; Outrigger does not read it for anyone
    /// either. Reads the disk.
    pub(crate) fn is_hidden_from_processes(&self, path: &Path, real: &Path) -> bool {
        let own = sandbox_policy::own_files(&self.project.folders);
        let mut hidden = own.hide.iter().chain(&own.closed);
        let rules = self
            .permissions
            .access
            .rules(&[&self.config.config.permission]);
        rules.keeps(path)
            || rules.keeps(real)
            || hidden.any(|it| it.canonicalize().is_ok_and(|it| real.starts_with(it)))
            || self.processes.is_forbidden(path)
    }

    /// Returns what is hidden from programs that Outrigger starts for itself, mainly git; `None` if nothing is sandboxed.
    ///
    /// # Errors
    /// [`ConfineError`]: the process must not be started then.
    pub(crate) async fn covers_of_helpers(&self) -> Result<Option<CoverWalk>, ConfineError> {
        if self.config.settings.sandbox == Sandbox::Off {
            return Ok(None);
        }
        let rules = self.config.config.permission.clone();
        self.covers_under(rules, false, None, None).await.map(Some)
    }

    /// Returns what is hidden from processes under these rules; with `homes` also what plugins cannot see, plus `more`. Tool
    /// outputs of the session stay visible.
    async fn covers_under(
        &self,
        rules: Vec<Rule>,
        homes: bool,
        more: Option<MoreFn>,
        session: Option<&SessionId>,
    ) -> Result<CoverWalk, ConfineError> {
        let outputs = session.map(|it| self.outputs_of(it));
        let (location, folders) = (self.project.location.clone(), self.project.folders.clone());
        let (access, forbidden) = (
            self.permissions.access.clone(),
            DenyPolicy::of(&self.config, &location),
        );
        let again: CoversFn = Arc::new(move || {
            let mut found = sandbox_policy::covers(&access.rules(&[&rules]), &folders, &forbidden)?;
            if let Some(more) = more {
                found.read_only.extend(more(&location)?);
            }
            let outputs = outputs.clone().filter(|it| it.is_dir());
            found.held.extend(outputs);
            let all = folders.data.join("plugin-homes");
            found
                .hide
                .extend(Some(all).filter(|path| homes && path.exists()));
            Ok(found)
        });
        let first = Arc::clone(&again);
        let found = tokio::task::spawn_blocking(move || first()).await;
        let found = found.unwrap_or(Err(SandboxError::Stopped))?;
        Ok(CoverWalk::new(found, again))
    }

    async fn narrow(
        &self,
        profile: Profile,
        reads: Option<Vec<PathBuf>>,
    ) -> Result<Policy, ConfineError> {
        let temporary = self
            .processes
            .temporary
            .folder()
            .map_err(ConfineError::Temporary)?;
        let (config, location) = (self.config.clone(), self.project.location.clone());
        let (folders, loopback) = (
            self.project.folders.clone(),
            self.processes.loopback.clone(),
        );
        let made = tokio::task::spawn_blocking(move || {
            let around = SandboxInput {
                config: &config,
                location: &location,
                folders: &folders,
                temporary,
                loopback,
                process: Process::Command,
            };
            around.policy(profile, reads)
        });
        Ok(made.await.unwrap_or(Err(SandboxError::Stopped))?)
    }

    async fn confine_to(
        &self,
        command: Command<'_>,
        rules: Vec<Rule>,
    ) -> Result<Option<Policy>, ConfineError> {
        let Command {
            profile,
            session,
            more,
            reads,
        } = command;
        if self.config.settings.sandbox == Sandbox::Off {
            return Ok(None);
        }
        if let Some(workspace_trust) = &self.permissions.workspace_trust {
            workspace_trust
                .will_run()
                .await
                .map_err(ConfineError::Noted)?;
        }
        let by_path = self.permissions.access.rules(&[&rules]);
        let denied = by_path.denies() || self.config.settings.forbid.is_about_files();
        let covers = self.covers_under(rules, true, more, session);
        let (found, mut policy) = match profile {
            Profile::Full => (covers.await?, Policy::open()),
            // Computed concurrently: a command waits for both.
            narrower => tokio::try_join!(covers, self.narrow(narrower, reads))?,
        };
        if profile == Profile::Full && found.covers().is_empty() {
            return Ok(None);
        }
        by_path.keep_free(&mut policy, found.covers());
        policy.kept = found;
        policy.ends_uncovered = true;
        if denied && policy.calls.is_none() {
            // A user service would read for it what it cannot see.
            policy.calls = Some(Calls {
                udp: true,
                ..Calls::default()
            });
        }
        if let Some(calls) = &mut policy.calls {
            calls.unix_sockets |= self.config.settings.tools.unix_sockets;
        }
        is_enforced(
            &policy,
            &self.config.settings,
            profile,
            self.processes.spawner.has_views(),
        )?;
        Ok(Some(policy))
    }
}

impl ProcessServices {
    /// Returns whether the machine policy forbids a file, by its absolute path or the target of its links.
    pub(crate) fn is_forbidden(&self, path: &Path) -> bool {
        is_forbidden(self.spawner.forbids(), path)
    }
}
