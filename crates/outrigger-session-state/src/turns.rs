//! Running turns: which sessions have one, how each is reached and cancelled, and whether new ones may start.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use outrigger_protocol::id::{SessionId, TurnId};
use outrigger_protocol::session::SessionStatus;
use outrigger_stdx::sync::lock;
use tokio::sync::watch;

use crate::turn_channel::Outbox;

/// This agent starts no more turns: another one replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the folder's plugins are loaded anew; send it again")]
pub struct Retired;

/// The sender to a running turn.
pub type Steering = Outbox;

/// The turns of an agent.
#[derive(Default)]
pub struct Turns {
    running: Mutex<Running>,
    /// Sessions whose model request failed and waits for a retry.
    retrying: Mutex<HashMap<SessionId, SessionStatus>>,
    steering: Mutex<HashMap<SessionId, Steering>>,
    /// Current step of each turn, for the audit.
    steps: Mutex<HashMap<TurnId, u64>>,
    /// Number of open plugin calls, by session.
    plugin_calls: Mutex<HashMap<SessionId, usize>>,
    /// Number of turns that plugins have started in all sessions since the last prompt that no plugin sent.
    started_by_plugins: AtomicU64,
    /// Nothing new may start.
    closing: AtomicBool,
    /// A turn was cancelled: its caller does not want to wait for titles.
    hurry: AtomicBool,
}

#[derive(Default)]
struct Running {
    /// Cancel switch of each turn.
    cancels: HashMap<SessionId, watch::Sender<bool>>,
    /// Number of other work items that keep the agent.
    at_work: usize,
    /// Another agent replaces this one.
    retired: bool,
}

/// Makes a turn reachable until dropped.
pub struct Steered<'a> {
    turns: &'a Turns,
    id: SessionId,
    own: Steering,
}

impl Drop for Steered<'_> {
    fn drop(&mut self) {
        let mut all = lock(&self.turns.steering);
        if all
            .get(&self.id)
            .is_some_and(|other| other.same_channel(&self.own))
        {
            all.remove(&self.id);
        }
    }
}

/// An open call of a plugin for a session.
pub struct PluginCall<'a> {
    turns: &'a Turns,
    id: SessionId,
}

impl Drop for PluginCall<'_> {
    fn drop(&mut self) {
        let mut open = lock(&self.turns.plugin_calls);
        if let Some(count) = open.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.id);
            }
        }
    }
}

impl Turns {
    /// Puts a session on the list of running ones.
    ///
    /// # Errors
    /// [`Retired`] when another agent takes this one's place.
    pub fn register(&self, id: &SessionId, cancel: watch::Sender<bool>) -> Result<(), Retired> {
        let mut running = self.running();
        if running.retired {
            return Err(Retired);
        }
        running.cancels.insert(id.clone(), cancel);
        Ok(())
    }

    /// Removes a session from the list of running ones.
    pub fn unregister(&self, id: &SessionId) {
        self.running().cancels.remove(id);
        self.retries_no_more(id);
    }

    /// Returns whether a turn runs in a session.
    pub fn is_running(&self, id: &SessionId) -> bool {
        self.running().cancels.contains_key(id)
    }

    /// Cancels the turn of a session; returns false if none runs.
    pub fn cancel(&self, id: &SessionId) -> bool {
        let running = self.running();
        running
            .cancels
            .get(id)
            .is_some_and(|sender| sender.send(true).is_ok())
    }

    /// Cancels all turns; returns false if none runs.
    pub fn cancel_all(&self) -> bool {
        let all: Vec<_> = self.running().cancels.values().cloned().collect();
        for cancel in &all {
            let _ = cancel.send(true);
        }
        !all.is_empty()
    }

    /// Returns the status of the sessions with a running turn.
    pub fn statuses(&self) -> BTreeMap<SessionId, SessionStatus> {
        let retrying = lock(&self.retrying).clone();
        let status = |id: &SessionId| retrying.get(id).cloned().unwrap_or(SessionStatus::Busy);
        let running = self.running();
        running
            .cancels
            .keys()
            .map(|id| (id.clone(), status(id)))
            .collect()
    }

    /// Records that a model request failed and waits for a retry.
    pub fn waits_to_retry(&self, id: &SessionId, status: SessionStatus) {
        lock(&self.retrying).insert(id.clone(), status);
    }

    /// Records that the model answers, its request was given up, or the turn is over.
    pub fn retries_no_more(&self, id: &SessionId) {
        lock(&self.retrying).remove(id);
    }

    /// Makes a turn reachable. A message that wants no reply is a separate turn beside the running one, which stays
    /// reachable.
    pub fn steer(&self, id: &SessionId, own: &Steering) -> Steered<'_> {
        lock(&self.steering)
            .entry(id.clone())
            .or_insert_with(|| own.clone());
        Steered {
            turns: self,
            id: id.clone(),
            own: own.clone(),
        }
    }

    /// Returns the sender to the turn that runs in a session.
    pub fn steering(&self, id: &SessionId) -> Option<Steering> {
        lock(&self.steering).get(id).cloned()
    }

    /// Sets the current step of a turn.
    pub fn at_step(&self, turn: &TurnId, step: u64) {
        lock(&self.steps).insert(turn.clone(), step);
    }

    /// The turn is over.
    pub fn forget_step(&self, turn: &TurnId) {
        lock(&self.steps).remove(turn);
    }

    /// Returns the current step of a turn.
    pub fn step_of(&self, turn: Option<&TurnId>) -> Option<String> {
        lock(&self.steps).get(turn?).map(u64::to_string)
    }

    /// Marks a plugin as active for a session until the guard is dropped.
    pub fn enter_plugins(&self, id: &SessionId) -> PluginCall<'_> {
        *lock(&self.plugin_calls).entry(id.clone()).or_default() += 1;
        PluginCall {
            turns: self,
            id: id.clone(),
        }
    }

    /// Returns whether a plugin is active for the session.
    pub fn is_with_plugins(&self, id: &SessionId) -> bool {
        lock(&self.plugin_calls).contains_key(id)
    }

    /// Prevents anything new from starting.
    pub fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
    }

    /// Returns whether [`Self::close`] was called.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Counts a turn that a plugin starts. `in_session` is the number that the history of its session has.
    ///
    /// # Errors
    /// The number of turns so far, if it has reached the limit.
    pub fn count_plugin_turn(&self, in_session: u64, limit: u64) -> Result<(), u64> {
        let add = |counted: u64| {
            let so_far = counted.max(in_session);
            (so_far < limit).then_some(so_far + 1)
        };
        let counter = &self.started_by_plugins;
        let counted = counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, add);
        counted.map(drop).map_err(|counted| counted.max(in_session))
    }

    /// Starts a new count of turns that plugins start: somebody else has sent a prompt.
    pub fn forget_plugin_turns(&self) {
        self.started_by_plugins.store(0, Ordering::SeqCst);
    }

    /// Records that the caller cancels and does not want to wait.
    pub fn hurry(&self) {
        self.hurry.store(true, Ordering::SeqCst);
    }

    /// Returns whether [`Self::hurry`] was called.
    pub fn is_in_hurry(&self) -> bool {
        self.hurry.load(Ordering::SeqCst)
    }

    /// Starts work that keeps the agent; returns false if it was retired.
    pub fn begin_work(&self) -> bool {
        let mut running = self.running();
        if !running.retired {
            running.at_work += 1;
        }
        !running.retired
    }

    /// Ends what [`Self::begin_work`] began.
    pub fn end_work(&self) {
        self.running().at_work -= 1;
    }

    /// Prevents anything from starting, if there is no work and `idle` confirms that nothing else runs.
    pub fn retire(&self, idle: impl FnOnce() -> bool) -> bool {
        let mut running = self.running();
        let idle = running.cancels.is_empty() && running.at_work == 0 && idle();
        running.retired |= idle;
        idle
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        lock(&self.running)
    }
}
