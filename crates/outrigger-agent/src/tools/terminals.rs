//! Terminals of clients: `GET /pty` and the routes below it, with the hooks and events of [`Ptys`].
//!
//! A terminal is the user's shell, not the model's: it needs no approval, since the user who opens it would approve it. It
//! ends with the agent.

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
    /// Publishes an event of a terminal. If it cannot be stored, that is logged: the terminal itself still works.
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
    /// Returns the running terminals, oldest first.
    #[must_use]
    pub fn ptys(&self) -> Vec<PtyInfo> {
        self.state.tools.terminals.list()
    }

    /// Returns one terminal.
    #[must_use]
    pub fn pty(&self, id: &str) -> Option<PtyInfo> {
        self.state.tools.terminals.info(id)
    }

    /// Opens a terminal and publishes `pty.created`. Plugins' `shell.env` hooks say which variables it gets.
    ///
    /// # Errors
    /// [`PtyError`]; then no process is left.
    pub async fn open_pty(&self, new: NewPty) -> Result<PtyInfo, PtyError> {
        let state = &self.state;
        state.tools.terminals.check_room()?;
        let folder = &state.project.location.directory;
        let cwd = new.cwd.map_or_else(
            || folder.clone(),
            |cwd| outrigger_sandbox::paths::resolve(folder, &cwd),
        );
        let env = self.pty_environment(&cwd, new.env).await?;
        let command = match new.command.filter(|command| !command.is_empty()) {
            Some(command) => PathBuf::from(command),
            None => state.login_shell(),
        };
        let start = StartPty {
            command,
            args: new.args.unwrap_or_default(),
            cwd,
            title: new.title,
            env,
        };
        let spawner = &state.processes.commands_spawner;
        let started = state
            .tools
            .terminals
            .start(spawner, start, outrigger_session_state::ids::pty())
            .await?;
        let info = started.info.clone();
        state
            .publish_pty("pty.created", json!({ "info": info }))
            .await;
        tokio::spawn(follow(Arc::downgrade(state), started));
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
            .state
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
        let info = self.state.tools.terminals.update(id, title, size)?;
        if let Some(info) = &info {
            self.state
                .publish_pty("pty.updated", json!({ "info": info }))
                .await;
        }
        Ok(info)
    }

    /// Kills a terminal with everything that runs in it and publishes `pty.deleted`; returns false if it does not exist.
    pub async fn remove_pty(&self, id: &str) -> bool {
        let is_removed = self.state.tools.terminals.remove(id);
        if is_removed {
            self.state
                .publish_pty("pty.deleted", json!({ "id": id }))
                .await;
        }
        is_removed
    }

    /// Attaches to a terminal. `from` selects the first output. `None` if the terminal does not exist.
    #[must_use]
    pub fn attach_pty(&self, id: &str, from: PtyFrom) -> Option<Attached> {
        self.state.tools.terminals.attach(id, from)
    }

    /// Returns a ticket that allows attaching to this terminal once, within a minute; `None` if the terminal does not
    /// exist or the system has no randomness.
    #[must_use]
    pub fn pty_ticket(&self, id: &str) -> Option<(String, Duration)> {
        self.state.tools.terminals.ticket(id)
    }

    /// Consumes a ticket; returns false if it is not valid for this terminal.
    #[must_use]
    pub fn use_pty_ticket(&self, id: &str, text: &str) -> bool {
        self.state.tools.terminals.use_ticket(id, text)
    }
}

/// Follows a terminal until it ends and publishes that. A removed one was published already.
async fn follow(state: Weak<AgentState>, started: Started) {
    let id = started.info.id.clone();
    if let Some(code) = started.follow().await
        && let Some(state) = state.upgrade()
    {
        state.tools.terminals.forget(&id);
        state
            .publish_pty("pty.exited", json!({ "id": id, "exitCode": code }))
            .await;
    }
}
