//! The breakers of commands: one for each event that a command is bound to (A8). What one command does never costs another:
//! they share a file, and nothing else.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use outrigger_config::claude_hooks::HookEvent;
use outrigger_kernel::breaker::{Ended, Gate, Rules};
use outrigger_plugin_status::{
    BreakerKey, BreakerMemory, BreakerStatus, Breakers, GuardedCall, NoticeFn,
};
use outrigger_protocol::Millis;
use outrigger_protocol::id::TurnId;
use outrigger_stdx::sync::lock;

/// Identity of a command: the same line under the same `CLAUDE_PROJECT_DIR`, or of the same plugin, is the same command,
/// whichever file defines it.
pub(crate) type Line = (PathBuf, String);

/// A command that is about to run for an event.
#[derive(Clone, Debug)]
pub(crate) struct Due<'a> {
    /// Index and name of the plugin whose file defines it.
    pub(crate) plugin: (usize, &'a str),
    pub(crate) line: Line,
    pub(crate) event: HookEvent,
    pub(crate) turn: Option<&'a TurnId>,
}

/// A command at an event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CommandKey {
    line: Line,
    event: HookEvent,
}

impl BreakerKey for CommandKey {
    type Callee = Line;

    fn callee(&self) -> Line {
        self.line.clone()
    }

    fn place(&self) -> &'static str {
        self.event.name()
    }

    fn label(&self) -> String {
        let command = crate::answer::shortened(&self.line.1);
        format!("{} `{command}`", self.place())
    }
}

/// Returns the name under which the breakers of a command are stored.
fn stored_name((folder, line): &Line) -> String {
    format!("command {} {line}", folder.display())
}

/// Breakers of all commands.
pub struct CommandBreakers {
    breakers: Breakers<CommandKey>,
    memory: Arc<dyn BreakerMemory>,
    /// The commands whose stored breakers have been restored, each with the plugin in whose list it is shown.
    listed: Mutex<BTreeMap<Line, usize>>,
}

impl CommandBreakers {
    /// Makes the breakers, which are restored when their command is first asked about. `now` is in milliseconds since the
    /// epoch, `on` the flag `plugin_circuit_breaker`.
    #[must_use]
    pub fn new(
        on: bool,
        rules: Rules,
        now: Millis,
        memory: Arc<dyn BreakerMemory>,
        notice: NoticeFn,
    ) -> Self {
        let breakers = Breakers::new(on, rules, now, notice);
        breakers.store_in(Arc::clone(&memory), |key: &CommandKey| {
            Some(stored_name(&key.line))
        });
        Self {
            breakers,
            memory,
            listed: Mutex::default(),
        }
    }

    /// Restores what earlier processes stored for a command.
    fn recall(&self, due: &Due<'_>) {
        let mut listed = lock(&self.listed);
        if listed.contains_key(&due.line) {
            return;
        }
        listed.insert(due.line.clone(), due.plugin.0);
        let name = stored_name(&due.line);
        self.breakers.recall(self.memory.as_ref(), &name, |place| {
            let mut events = HookEvent::ALL.into_iter();
            let event = events.find(|event| event.name() == place)?;
            let line = due.line.clone();
            Some(CommandKey { line, event })
        });
    }

    /// Decides whether a command may be run now. What is let through is ended by [`Running::ended`], or is not recorded.
    ///
    /// # Errors
    /// Why it is skipped.
    pub(crate) fn ask<'a>(&'a self, due: Due<'a>) -> Result<Running<'a>, String> {
        if self.breakers.on() {
            self.recall(&due);
        }
        let key = CommandKey {
            line: due.line,
            event: due.event,
        };
        let mut running = Running {
            breakers: &self.breakers,
            plugin: due.plugin.1,
            key,
            turn: due.turn,
            gate: None,
        };
        match self.breakers.ask(&running.call()) {
            Ok(gate) => {
                running.gate = Some(gate);
                Ok(running)
            }
            Err(why) => Err(format!("{} is skipped: {why}", running.key.label())),
        }
    }

    /// Returns the breakers of a file's commands that are not at rest.
    pub(crate) fn of(&self, plugin: usize) -> Vec<BreakerStatus> {
        let listed = lock(&self.listed);
        let is_listed = |key: &CommandKey| listed.get(&key.line) == Some(&plugin);
        self.breakers.statuses(is_listed)
    }
}

/// A command that was let through. One that is dropped before its end has no result, and a trial is repeated by the next call.
pub(crate) struct Running<'a> {
    breakers: &'a Breakers<CommandKey>,
    plugin: &'a str,
    key: CommandKey,
    turn: Option<&'a TurnId>,
    gate: Option<Gate>,
}

impl Running<'_> {
    fn call(&self) -> GuardedCall<'_, CommandKey> {
        GuardedCall {
            plugin: self.plugin,
            key: &self.key,
            turn: self.turn,
        }
    }

    pub(crate) fn ended(mut self, ended: Ended) {
        self.end(ended);
    }

    fn end(&mut self, ended: Ended) {
        if let Some(gate) = self.gate.take() {
            self.breakers.ended(&self.call(), gate, ended);
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.end(Ended::Unclear);
    }
}
