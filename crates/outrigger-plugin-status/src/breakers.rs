//! Which calls are skipped because they keep timing out: a breaker for each place at which something is called (A8), and for
//! one turn the callees that timed out at two places of it (A13). Hooks of plugins and command hooks share it; they differ in
//! their [`BreakerKey`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use outrigger_kernel::breaker::{Breaker, Ended, Gate, Rules, Strikes, Turned};
use outrigger_protocol::Millis;
use outrigger_protocol::id::TurnId;
use outrigger_stdx::sync::lock;

use crate::{BreakerMemory, BreakerState, BreakerStatus, Notice, NoticeFn};

/// What has a breaker: something that is called, at one place.
pub trait BreakerKey: Clone + Ord {
    /// What is called. It sits out the rest of a turn in which it timed out at two places.
    type Callee: Clone + Ord;

    /// Returns what is called.
    fn callee(&self) -> Self::Callee;

    /// Returns the name of the place that is shown to users: a hook or an event.
    fn place(&self) -> &'static str;

    /// Returns the name of the place under which its breaker is stored.
    fn stored_place(&self) -> &'static str {
        self.place()
    }

    /// Returns what lists and messages show: the place, and the callee if the plugin does not name it.
    fn label(&self) -> String {
        self.place().to_owned()
    }
}

/// A call that is about to be made, or has ended.
#[derive(Clone, Copy, Debug)]
pub struct GuardedCall<'a, K> {
    /// Name of the plugin that is called, or whose file has the command.
    pub plugin: &'a str,
    /// What has the breaker.
    pub key: &'a K,
    /// The turn that it belongs to.
    pub turn: Option<&'a TurnId>,
}

/// The name under which the breakers of a callee are stored; `None` for one that is not stored.
type StoredName<K> = Box<dyn Fn(&K) -> Option<String> + Send + Sync>;

struct Memory<K> {
    store: Arc<dyn BreakerMemory>,
    name: StoredName<K>,
}

struct State<K: BreakerKey> {
    breakers: BTreeMap<K, Breaker>,
    strikes: Strikes<K::Callee, &'static str>,
}

/// The breakers of all callees of one kind.
pub struct Breakers<K: BreakerKey> {
    /// Flag `plugin_circuit_breaker`; without it every call is let through and no timeout is recorded.
    on: bool,
    rules: Rules,
    /// When it was made, also in milliseconds since the epoch.
    began: (Instant, Millis),
    state: Mutex<State<K>>,
    memory: OnceLock<Memory<K>>,
    notice: NoticeFn,
}

impl<K: BreakerKey> Breakers<K> {
    /// Makes breakers that are all closed. `on` is the flag `plugin_circuit_breaker`, `now` milliseconds since the epoch.
    pub fn new(on: bool, rules: Rules, now: Millis, notice: NoticeFn) -> Self {
        Self {
            on,
            rules,
            began: (Instant::now(), now),
            state: Mutex::new(State {
                breakers: BTreeMap::new(),
                strikes: Strikes::default(),
            }),
            memory: OnceLock::new(),
            notice,
        }
    }

    /// Returns whether breakers are in use.
    pub fn on(&self) -> bool {
        self.on
    }

    /// Stores changed breakers from now on, those of a key under `name`.
    pub fn store_in(
        &self,
        store: Arc<dyn BreakerMemory>,
        name: impl Fn(&K) -> Option<String> + Send + Sync + 'static,
    ) {
        let name = Box::new(name);
        let _ = self.memory.set(Memory { store, name });
    }

    /// Restores the breakers that earlier processes stored under `name`; `key` makes a key of a stored place.
    pub fn recall(&self, store: &dyn BreakerMemory, name: &str, key: impl Fn(&str) -> Option<K>) {
        if !self.on {
            return;
        }
        let now = self.now();
        let mut state = self.state();
        for (place, stored) in store.recall(name) {
            if let Some(key) = key(&place) {
                let breaker = Breaker::recall(stored, now, &self.rules);
                state.breakers.insert(key, breaker);
            }
        }
    }

    /// Decides whether a call may be made now. One that may be made must be ended with [`Breakers::ended`].
    ///
    /// # Errors
    /// Why it is skipped.
    pub fn ask(&self, call: &GuardedCall<'_, K>) -> Result<Gate, String> {
        if !self.on {
            return Ok(Gate::Call);
        }
        let now = self.now();
        let mut state = self.state();
        let callee = call.key.callee();
        if let Some(places) = call.turn.and_then(|turn| state.strikes.out(turn, &callee)) {
            return Err(format!(
                "it timed out at {} in this turn and sits out the rest of it",
                places.join(" and ")
            ));
        }
        // Most callees never time out, and have no breaker.
        let Some(breaker) = state.breakers.get_mut(call.key) else {
            return Ok(Gate::Call);
        };
        let gate = breaker.ask(now);
        drop(state);
        match gate {
            Gate::Skip { until } if until > now => Err(format!(
                "its breaker is open for another {} s, since it kept timing out",
                (until - now).div_ceil(1000)
            )),
            Gate::Skip { .. } => {
                Err("its breaker is half open, and a trial is under way".to_owned())
            }
            Gate::Trial => {
                self.notify(call, BreakerState::HalfOpen, None);
                Ok(gate)
            }
            Gate::Call => Ok(gate),
        }
    }

    /// Records how a call ended that was let through.
    pub fn ended(&self, call: &GuardedCall<'_, K>, gate: Gate, ended: Ended) {
        if !self.on {
            return;
        }
        let now = self.now();
        let mut state = self.state();
        if ended == Ended::TimedOut {
            if let Some(turn) = call.turn {
                let callee = call.key.callee();
                state.strikes.add(turn, &callee, call.key.place());
            }
            state.breakers.entry(call.key.clone()).or_default();
        }
        let (mut turned, mut changed) = (None, None);
        if let Some(breaker) = state.breakers.get_mut(call.key) {
            let before = breaker.clone();
            turned = ended.turn(breaker, gate, now, &self.rules);
            changed = (*breaker != before).then(|| breaker.keep());
        }
        drop(state);
        let memory = changed.zip(self.memory.get());
        if let Some((stored, memory)) = memory
            && let Some(name) = (memory.name)(call.key)
        {
            memory.store.keep(&name, call.key.stored_place(), stored);
        }
        match turned {
            Some(Turned::Open { until }) => {
                let pause = until.saturating_sub(now);
                self.notify(call, BreakerState::Open, Some(pause));
            }
            Some(Turned::Closed) => self.notify(call, BreakerState::Closed, None),
            None => {}
        }
    }

    /// Returns the breakers that are not at rest, of the keys that `is_shown` selects.
    pub fn statuses(&self, is_shown: impl Fn(&K) -> bool) -> Vec<BreakerStatus> {
        let now = self.now();
        let state = self.state();
        state
            .breakers
            .iter()
            .filter(|(key, _)| is_shown(key))
            .filter_map(|(key, breaker)| {
                BreakerStatus::of(&key.label(), breaker.view(now, &self.rules), now)
            })
            .collect()
    }

    fn now(&self) -> Millis {
        let (began, at) = self.began;
        let elapsed = Millis::try_from(began.elapsed().as_millis()).unwrap_or(Millis::MAX);
        at.saturating_add(elapsed)
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        lock(&self.state)
    }

    fn notify(&self, call: &GuardedCall<'_, K>, state: BreakerState, pause: Option<Millis>) {
        let (plugin, hook) = (call.plugin, call.key.label());
        match (state, pause) {
            (BreakerState::Open, Some(0)) => tracing::warn!(
                "plugin {plugin}: {hook} was tried without a result; the next call is the next trial"
            ),
            (BreakerState::Open, Some(pause)) => tracing::warn!(
                "plugin {plugin}: {hook} keeps timing out and is skipped for {} s",
                pause.div_ceil(1000)
            ),
            (BreakerState::HalfOpen, _) => {
                tracing::warn!("plugin {plugin}: {hook} is tried again");
            }
            _ => tracing::warn!("plugin {plugin}: {hook} answers again and is called as before"),
        }
        (self.notice)(Notice::Breaker {
            plugin: plugin.to_owned(),
            hook,
            state,
            pause_ms: pause,
        });
    }
}
