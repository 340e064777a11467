//! Commands that are skipped because they keep timing out. Each command has its own breakers, one for each event it is bound to
//! (A8), and is skipped for the rest of a turn in which it timed out at two events (A13). One command never disables another:
//! they share a file, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use outrigger_config::claude_hooks::HookEvent;
use outrigger_files::sync::lock;
use outrigger_kernel::breaker::{Breaker, Ended, Gate, Rules, Strikes, Turned};
use outrigger_plugin_status::{BreakerMemory, BreakerState, BreakerStatus, Notice, NoticeFn};
use outrigger_protocol::Millis;
use outrigger_protocol::id::TurnId;

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

impl Due<'_> {
    /// Returns its name for lists and messages.
    fn name(&self) -> String {
        named(self.event, &self.line)
    }

    fn place(&self) -> (Line, HookEvent) {
        (self.line.clone(), self.event)
    }
}

fn named(event: HookEvent, line: &Line) -> String {
    format!("{} `{}`", event.name(), crate::answer::shortened(&line.1))
}

/// Returns a command's name in the store.
fn kept_name((folder, line): &Line) -> String {
    format!("command {} {line}", folder.display())
}

#[derive(Default)]
struct State {
    /// Commands whose stored state has been loaded.
    recalled: BTreeSet<Line>,
    /// With the plugin in whose list it is shown.
    hooks: BTreeMap<(Line, HookEvent), (usize, Breaker)>,
    /// Events at which it timed out, by command.
    strikes: Strikes<Line, HookEvent>,
}

/// Breakers of all commands.
pub struct CommandBreakers {
    /// Flag `plugin_circuit_breaker`; if off, every command is run and nothing is counted.
    on: bool,
    rules: Rules,
    /// Time of creation, also in milliseconds since the epoch.
    began: (Instant, Millis),
    state: Mutex<State>,
    memory: Arc<dyn BreakerMemory>,
    notice: NoticeFn,
}

impl CommandBreakers {
    /// Creates the breakers with their stored state, at `now` in milliseconds since the epoch; `on` is the flag
    /// `plugin_circuit_breaker`.
    #[must_use]
    pub fn new(
        on: bool,
        rules: Rules,
        now: Millis,
        memory: Arc<dyn BreakerMemory>,
        notice: NoticeFn,
    ) -> Self {
        Self {
            on,
            rules,
            began: (Instant::now(), now),
            state: Mutex::default(),
            memory,
            notice,
        }
    }

    fn now(&self) -> Millis {
        let (began, at) = self.began;
        let elapsed = Millis::try_from(began.elapsed().as_millis()).unwrap_or(Millis::MAX);
        at.saturating_add(elapsed)
    }

    /// Restores the stored state of a command.
    fn recall(&self, state: &mut State, due: &Due<'_>, now: Millis) {
        if !state.recalled.insert(due.line.clone()) {
            return;
        }
        for (place, kept) in self.memory.recall(&kept_name(&due.line)) {
            let mut events = HookEvent::ALL.into_iter();
            if let Some(event) = events.find(|event| event.name() == place) {
                let breaker = Breaker::recall(kept, now, &self.rules);
                let place = (due.line.clone(), event);
                state.hooks.insert(place, (due.plugin.0, breaker));
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Whether a command may be run now; what is let through is ended by [`Running::ended`], or counts for nothing.
    ///
    /// # Errors
    /// Why it is left out.
    pub(crate) fn ask<'a>(&'a self, due: Due<'a>) -> Result<Running<'a>, String> {
        let running = |gate| Running {
            breakers: self,
            due: due.clone(),
            gate: Some(gate),
        };
        if !self.on {
            return Ok(running(Gate::Call));
        }
        let now = self.now();
        let mut state = self.state();
        self.recall(&mut state, &due, now);
        if let Some(events) = due.turn.and_then(|turn| state.strikes.out(turn, &due.line)) {
            let events: Vec<_> = events.iter().map(|event| event.name()).collect();
            return Err(format!(
                "{} is left out: it timed out at {} in this turn and sits out the rest of it",
                due.name(),
                events.join(" and ")
            ));
        }
        // Most commands never time out, and have no breaker.
        let gate = match state.hooks.get_mut(&due.place()) {
            Some((_, breaker)) => breaker.ask(now),
            None => Gate::Call,
        };
        drop(state);
        match gate {
            Gate::Skip { until } => Err(format!(
                "{} is left out for another {} s, since it kept timing out",
                due.name(),
                until.saturating_sub(now).div_ceil(1000)
            )),
            Gate::Trial => {
                self.notify(&due, BreakerState::HalfOpen, None);
                Ok(running(gate))
            }
            Gate::Call => Ok(running(gate)),
        }
    }

    fn end(&self, due: &Due<'_>, gate: Gate, ended: Ended) {
        if !self.on {
            return;
        }
        let now = self.now();
        let mut state = self.state();
        if ended == Ended::TimedOut {
            if let Some(turn) = due.turn {
                state.strikes.add(turn, &due.line, due.event);
            }
            let place = state.hooks.entry(due.place());
            place.or_insert_with(|| (due.plugin.0, Breaker::default()));
        }
        let (mut turned, mut changed) = (None, None);
        if let Some((_, breaker)) = state.hooks.get_mut(&due.place()) {
            let before = breaker.clone();
            turned = ended.turn(breaker, gate, now, &self.rules);
            changed = (*breaker != before).then(|| breaker.keep());
        }
        drop(state);
        if let Some(kept) = changed {
            let name = kept_name(&due.line);
            self.memory.keep(&name, due.event.name(), kept);
        }
        match turned {
            Some(Turned::Open { until }) => {
                let pause = until.saturating_sub(now);
                self.notify(due, BreakerState::Open, Some(pause));
            }
            Some(Turned::Closed) => self.notify(due, BreakerState::Closed, None),
            None => {}
        }
    }

    fn notify(&self, due: &Due<'_>, state: BreakerState, pause: Option<Millis>) {
        let (plugin, hook) = (due.plugin.1, due.name());
        match (state, pause) {
            (BreakerState::Open, Some(pause)) => tracing::warn!(
                "plugin {plugin}: {hook} keeps timing out and is left out for {} s",
                pause.div_ceil(1000)
            ),
            (BreakerState::HalfOpen, _) => {
                tracing::warn!("plugin {plugin}: {hook} is tried again");
            }
            _ => tracing::warn!("plugin {plugin}: {hook} answers again and is run as before"),
        }
        (self.notice)(Notice::Breaker {
            plugin: plugin.to_owned(),
            hook,
            state,
            pause_ms: pause,
        });
    }

    /// Returns the breakers of a file's commands that are not at rest.
    pub(crate) fn of(&self, plugin: usize) -> Vec<BreakerStatus> {
        let now = self.now();
        let state = self.state();
        let own = state.hooks.iter().filter(|(_, (of, _))| *of == plugin);
        own.filter_map(|((line, event), (_, breaker))| {
            BreakerStatus::of(&named(*event, line), breaker.view(now, &self.rules), now)
        })
        .collect()
    }
}

/// A command that was let through. Dropped before its end, it is inconclusive, and the next call repeats a trial.
pub(crate) struct Running<'a> {
    breakers: &'a CommandBreakers,
    due: Due<'a>,
    gate: Option<Gate>,
}

impl Running<'_> {
    pub(crate) fn ended(mut self, ended: Ended) {
        if let Some(gate) = self.gate.take() {
            self.breakers.end(&self.due, gate, ended);
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(gate) = self.gate.take() {
            self.breakers.end(&self.due, gate, Ended::Unclear);
        }
    }
}
