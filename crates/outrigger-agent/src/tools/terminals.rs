//! Terminals of clients: `GET /pty` and what is under it, with the hooks and events around [`Ptys`].
//!
//! A terminal is a person's shell, not the model's: nothing asks for permission, since who opens it is who would be
//! asked. It ends with the agent.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use outrigger_kernel::hooks::HookInput;
use outrigger_kernel::hooks::points::execute::before_shell;
use outrigger_protocol::Object;
use outrigger_protocol::event::{CustomEvent, Event};
use outrigger_sandbox::Size;
use outrigger_workspace::terminals::{
    Attached, NewPty, PtyError, PtyFrom, PtyInfo, StartPty, Started,
};
use serde_json::{Value, json};

use crate::state::{Agent, AgentState};

fn event(kind: &str, properties: Value) -> Event {
    let properties = match properties {
        Value::Object(fields) => fields,
        _ => Object::new(),
    };
    Event::Custom(CustomEvent {
        depth: 0,
        kind: kind.to_owned(),
        properties,
    })
}

impl AgentState {
    /// Events of terminals that cannot be stored go to the log: the terminal itself is not at fault.
    async fn publish_pty(&self, kind: &str, properties: Value) {
        if let Err(error) = self.commit(Vec::new(), vec![event(kind, properties)]).await {
            tracing::error!("[pty] {kind}: {error}");
        }
    }

    fn login_shell(&self) -> PathBuf {
        let named = self.config.config.shell.as_ref().map(PathBuf::from);
        let own = std::env::var_os("SHELL").map(PathBuf::from);
        named
            .or_else(|| own.filter(|shell| shell.is_file()))
            .or_else(|| outrigger_sandbox::host_path::find("bash"))
            .unwrap_or_else(|| PathBuf::from("/bin/sh"))
    }
}

impl Agent {
    /// The terminals that run, the oldest first.
    #[must_use]
    pub fn ptys(&self) -> Vec<PtyInfo> {
        self.inner.ptys.list()
    }

    /// One of them.
    #[must_use]
    pub fn pty(&self, id: &str) -> Option<PtyInfo> {
        self.inner.ptys.info(id)
    }

    /// Opens a terminal and publishes `pty.created`. Plugins' `shell.env` hooks say which variables it gets.
    ///
    /// # Errors
    /// [`PtyError`]; then no process is left.
    pub async fn open_pty(&self, new: NewPty) -> Result<PtyInfo, PtyError> {
        let inner = &self.inner;
        inner.ptys.check_room()?;
        let folder = &inner.place.directory;
        let cwd = new.cwd.map_or_else(
            || folder.clone(),
            |cwd| outrigger_sandbox::paths::resolve(folder, &cwd),
        );
        let env = self.pty_environment(&cwd, new.env).await?;
        let command = match new.command.filter(|command| !command.is_empty()) {
            Some(command) => PathBuf::from(command),
            None => inner.login_shell(),
        };
        let start = StartPty {
            command,
            args: new.args.unwrap_or_default(),
            cwd,
            title: new.title,
            env,
        };
        let spawner = &inner.commands_spawner;
        let started = inner
            .ptys
            .start(spawner, start, outrigger_session_state::ids::pty())
            .await?;
        let info = started.info.clone();
        inner
            .publish_pty("pty.created", json!({ "info": info }))
            .await;
        tokio::spawn(follow(Arc::downgrade(inner), started));
        Ok(info)
    }

    async fn pty_environment(
        &self,
        cwd: &Path,
        wished: Option<BTreeMap<String, String>>,
    ) -> Result<Vec<(OsString, OsString)>, PtyError> {
        let input = before_shell::Input {
            cwd: &cwd.to_string_lossy(),
            session_id: None,
            call_id: None,
        };
        let (point, payload) = input.call(&before_shell::Output::default());
        let result = self
            .inner
            .run_hooks(point, vec![payload], None, None, None)
            .await;
        if let Some(block) = result.block {
            return Err(PtyError::Blocked(block.message));
        }
        let mut added: Object = wished
            .into_iter()
            .flatten()
            .map(|(name, value)| (name, json!(value)))
            .collect();
        let hooks = result.outputs.first().and_then(before_shell::read);
        added.extend(hooks.cloned().unwrap_or_default());
        added.insert("TERM".into(), json!("xterm-256color"));
        added.insert("OPENCODE_TERMINAL".into(), json!("1"));
        Ok(outrigger_tools::builtin::shell_environment(
            &[],
            Some(&added),
        ))
    }

    /// Changes title or size and publishes `pty.updated`; `None` when there is no such terminal.
    ///
    /// # Errors
    /// [`PtyError::Io`] when the size was not taken.
    pub async fn update_pty(
        &self,
        id: &str,
        title: Option<String>,
        size: Option<Size>,
    ) -> Result<Option<PtyInfo>, PtyError> {
        let info = self.inner.ptys.update(id, title, size)?;
        if let Some(info) = &info {
            self.inner
                .publish_pty("pty.updated", json!({ "info": info }))
                .await;
        }
        Ok(info)
    }

    /// Ends a terminal with all that runs in it and publishes `pty.deleted`; false when there is no such terminal.
    pub async fn remove_pty(&self, id: &str) -> bool {
        let is_removed = self.inner.ptys.remove(id);
        if is_removed {
            self.inner
                .publish_pty("pty.deleted", json!({ "id": id }))
                .await;
        }
        is_removed
    }

    /// Looks on. `from` says which output is wanted first. `None` when there is no such terminal.
    #[must_use]
    pub fn attach_pty(&self, id: &str, from: PtyFrom) -> Option<Attached> {
        self.inner.ptys.attach(id, from)
    }

    /// A word that lets who knows it attach to this terminal once, within a minute; `None` when there is no such terminal,
    /// or the system has no randomness.
    #[must_use]
    pub fn pty_ticket(&self, id: &str) -> Option<(String, Duration)> {
        self.inner.ptys.ticket(id)
    }

    /// Uses a ticket up; false when it is not one for this terminal.
    #[must_use]
    pub fn use_pty_ticket(&self, id: &str, text: &str) -> bool {
        self.inner.ptys.use_ticket(id, text)
    }
}

/// Follows a terminal until it ends and publishes that. One that was removed has been published already.
async fn follow(inner: Weak<AgentState>, started: Started) {
    let id = started.info.id.clone();
    if let Some(code) = started.follow().await
        && let Some(inner) = inner.upgrade()
    {
        inner.ptys.forget(&id);
        inner
            .publish_pty("pty.exited", json!({ "id": id, "exitCode": code }))
            .await;
    }
}
