//! Circuit breakers: a breaker for each hook of each plugin that keeps timing out (A8), and, for one turn, the plugins
//! that timed out at two points of it (A13).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use outrigger_files::sync::lock;
use outrigger_kernel::breaker::{Breaker, Ended, Gate, Rules, Strikes, Turned};
use outrigger_kernel::hooks::HookPoint;
use outrigger_plugin_status::{BreakerMemory, BreakerState, BreakerStatus, Notice, NoticeFn};
use outrigger_protocol::Millis;
use outrigger_protocol::id::TurnId;

/// Key of a hook: the plugin's index and the point.
type HookKey = (usize, &'static str);

/// Stored breakers, and the name of each plugin in the store.
struct Kept {
    memory: Arc<dyn BreakerMemory>,
    names: BTreeMap<usize, String>,
}

#[derive(Default)]
struct State {
    hooks: BTreeMap<HookKey, Breaker>,
    /// Hooks that timed out, by plugin.
    strikes: Strikes<usize, &'static str>,
}

/// Breakers of all hooks.
pub struct Breakers {
    /// Flag `plugin_circuit_breaker`; if off, every call is let through and nothing is counted.
    on: bool,
    rules: Rules,
    /// Time of creation, also in milliseconds since the epoch.
    began: (Instant, Millis),
    state: Mutex<State>,
    /// Set once the versions of plugins are known.
    kept: OnceLock<Kept>,
    notice: NoticeFn,
}

impl Breakers {
    /// Creates the breakers, all closed. `on` is the flag `plugin_circuit_breaker`, `now` is in milliseconds since the
    /// epoch.
    pub fn new(on: bool, rules: Rules, now: Millis, notice: NoticeFn) -> Self {
        Self {
            on,
            rules,
            began: (Instant::now(), now),
            state: Mutex::default(),
            kept: OnceLock::new(),
            notice,
        }
    }

    /// Returns whether breakers are in use.
    pub fn on(&self) -> bool {
        self.on
    }

    fn now(&self) -> Millis {
        let (began, at) = self.began;
        let elapsed = Millis::try_from(began.elapsed().as_millis()).unwrap_or(Millis::MAX);
        at.saturating_add(elapsed)
    }

    /// Restores what earlier processes stored of plugins, under the name of their version, and stores changes from now
    /// on.
    pub fn remember(&self, memory: Arc<dyn BreakerMemory>, names: BTreeMap<usize, String>) {
        if !self.on {
            return;
        }
        let now = self.now();
        let mut state = self.state();
        for (index, name) in &names {
            for (place, kept) in memory.recall(name) {
                if let Some(point) = HookPoint::parse(&place) {
                    let breaker = Breaker::recall(kept, now, &self.rules);
                    state.hooks.insert((*index, point.name()), breaker);
                }
            }
        }
        drop(state);
        let _ = self.kept.set(Kept { memory, names });
    }

    /// Stores a breaker that has changed.
    fn keep(&self, (plugin, point): HookKey, breaker: &Breaker) {
        let kept = self.kept.get();
        if let Some((kept, name)) = kept.and_then(|it| Some((it, it.names.get(&plugin)?))) {
            kept.memory.keep(name, point, breaker.keep());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Whether a plugin's hook may be called now.
    ///
    /// # Errors
    /// Why not. A call that may be made must be ended with [`Breakers::ended`].
    pub fn ask(
        &self,
        plugin: (usize, &str),
        point: HookPoint,
        turn: Option<&TurnId>,
    ) -> Result<Gate, String> {
        if !self.on {
            return Ok(Gate::Call);
        }
        let now = self.now();
        let mut state = self.state();
        if let Some(points) = turn.and_then(|turn| state.strikes.out(turn, &plugin.0)) {
            return Err(format!(
                "it timed out at {} in this turn and sits out the rest of it",
                points.join(" and ")
            ));
        }
        // Most hooks never time out and have no breaker.
        let Some(breaker) = state.hooks.get_mut(&(plugin.0, point.name())) else {
            return Ok(Gate::Call);
        };
        let gate = breaker.ask(now);
        drop(state);
        match gate {
            Gate::Skip { until } if until > now => Err(format!(
                "its breaker is open for another {:.0} s, since it kept timing out",
                secs(until - now).ceil()
            )),
            Gate::Skip { .. } => {
                Err("its breaker is half open, and a trial is under way".to_owned())
            }
            Gate::Trial => {
                self.tell(plugin.1, point, BreakerState::HalfOpen, None);
                Ok(gate)
            }
            Gate::Call => Ok(gate),
        }
    }

    /// Records the end of a call that was let through.
    pub fn ended(
        &self,
        plugin: (usize, &str),
        point: HookPoint,
        turn: Option<&TurnId>,
        gate: Gate,
        ended: Ended,
    ) {
        if !self.on {
            return;
        }
        let now = self.now();
        let mut state = self.state();
        let place = (plugin.0, point.name());
        if ended == Ended::TimedOut {
            if let Some(turn) = turn {
                state.strikes.add(turn, &plugin.0, point.hook());
            }
            state.hooks.entry(place).or_default();
        }
        let (mut turned, mut changed) = (None, None);
        if let Some(breaker) = state.hooks.get_mut(&place) {
            let before = breaker.clone();
            turned = ended.turn(breaker, gate, now, &self.rules);
            changed = (*breaker != before).then(|| breaker.clone());
        }
        drop(state);
        if let Some(breaker) = changed {
            self.keep(place, &breaker);
        }
        match turned {
            Some(Turned::Open { until }) => {
                let pause = until.saturating_sub(now);
                self.tell(plugin.1, point, BreakerState::Open, Some(pause));
            }
            Some(Turned::Closed) => self.tell(plugin.1, point, BreakerState::Closed, None),
            None => {}
        }
    }

    fn tell(&self, plugin: &str, point: HookPoint, state: BreakerState, pause: Option<Millis>) {
        let hook = point.hook();
        match (state, pause) {
            (BreakerState::Open, Some(0)) => tracing::warn!(
                "plugin {plugin}: {hook} was tried and it is not known how it does; the next call is the next trial"
            ),
            (BreakerState::Open, Some(pause)) => tracing::warn!(
                "plugin {plugin}: {hook} keeps timing out and is skipped for {:.0} s",
                secs(pause)
            ),
            (BreakerState::HalfOpen, _) => {
                tracing::warn!("plugin {plugin}: {hook} is tried again");
            }
            _ => tracing::warn!("plugin {plugin}: {hook} answers again and is called as before"),
        }
        (self.notice)(Notice::Breaker {
            plugin: plugin.to_owned(),
            hook: hook.to_owned(),
            state,
            pause_ms: pause,
        });
    }

    /// Returns the breakers of a plugin that are not at rest.
    pub fn of(&self, plugin: usize) -> Vec<BreakerStatus> {
        let now = self.now();
        let state = self.state();
        let hooks = state.hooks.range((plugin, "")..(plugin + 1, ""));
        let status = |(place, breaker): (&HookKey, &Breaker)| {
            let point = HookPoint::parse(place.1);
            let hook = point.map_or(place.1, |point| point.hook());
            BreakerStatus::of(hook, breaker.view(now, &self.rules), now)
        };
        hooks.filter_map(status).collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds for people")]
fn secs(ms: Millis) -> f64 {
    ms as f64 / 1000.0
}
