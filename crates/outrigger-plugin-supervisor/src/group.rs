//! A supervised plugin process: the same handle before and after a restart (A7).
//!
//! Calls get the live process with its generation. A caller that finds it hung or exited reports that with
//! [`Group::give_up`], naming the generation: the first report causes the restart, the others find it done. A process
//! that must be restarted too often stays off, with its plugins (A13).
//!
//! Plugins share a process until one of them hangs or crashes it: that plugin gets its own process before the others
//! restart. If the culprit is unknown, each plugin gets its own.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use outrigger_js::{JsError, JsProcess};
use outrigger_plugin_status::Notice;
use outrigger_protocol::rpc::Enter;
use outrigger_sandbox::process_time;
use outrigger_stdx::sync::lock;
use tokio::sync::watch;

use crate::blame::{Late, ended_by_itself, late, warn_undisposed};
use crate::launch::{Held, Launch, Loaded};
use crate::waiting::EventQueue;

mod events;
mod renew;
mod start;

/// Why a process became unusable.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Description for display.
    pub cause: String,
    /// Index of the plugin at fault; `None` if unknown.
    pub culprit: Option<usize>,
    /// The limit that it counts towards.
    pub counts: Counts,
}

impl Fault {
    /// Creates a fault for a process that the host ends on its own account: no plugin is blamed.
    pub fn by_host(cause: &str) -> Self {
        Self {
            cause: cause.to_owned(),
            culprit: None,
            counts: Counts::Nothing,
        }
    }
}

/// The limit that a fault counts towards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// None. A hook that misses its deadline is skipped by its breaker long before its process would be switched off.
    Nothing,
    /// The limit of restarts.
    Crash,
    /// The limit of restarts: a call that was held up has ended the process. The hanging call may itself be late.
    HeldUp,
    /// A separate limit, since detection may take half a minute each time: the third within ten minutes.
    Excess,
}

/// Time that the code of an abandoned call may continue before its process is killed.
const ABANDONED_TIMEOUT: Duration = Duration::from_secs(5);

/// A live process.
pub struct Live {
    /// The process itself.
    pub process: JsProcess,
    /// Its number in the sequence of its group's processes.
    pub generation: u64,
    /// Prefix of its calls' numbers.
    pub serial: u64,
    held: Held,
    gone: watch::Sender<Option<Fault>>,
}

impl Live {
    fn new(loaded: Loaded, generation: u64) -> Self {
        Self {
            process: loaded.process,
            generation,
            serial: loaded.serial,
            held: loaded.held,
            gone: watch::Sender::new(None),
        }
    }

    /// Returns why it was given up, if it was.
    pub fn given_up(&self) -> Option<Fault> {
        self.gone.borrow().clone()
    }

    /// Runs a call until it completes or the process is given up; then returns the fault. Calls hold the process, and
    /// it is killed when the last one releases it, so all of them must release it at once.
    pub async fn until_gone<T>(&self, call: impl Future<Output = T>) -> Result<T, Fault> {
        let mut gone = self.gone.subscribe();
        tokio::select! {
            biased;
            // Checked first, since a process that is given up is killed, which ends its calls.
            cause = gone.wait_for(Option::is_some) => {
                Err(cause.ok().and_then(|cause| cause.clone()).unwrap_or_else(|| Fault::by_host("it was ended")))
            }
            answer = call => Ok(answer),
        }
    }
}

/// The table of a project's processes, as seen by one of them.
pub trait ProcessTable: Send + Sync {
    /// Returns an unused key.
    fn key(&self) -> u64;
    /// Adds a process.
    fn add(&self, group: &Arc<Group>);
    /// Starts counting the CPU time of a process.
    fn begins(&self, key: u64, live: &Live);
}

/// A plugin process across restarts.
pub struct Group {
    /// Its key, unique in the project.
    pub key: u64,
    /// Its name in the log: the plugin's, or `shared`.
    pub name: String,
    /// Start options.
    pub launch: Arc<Launch>,
    /// All processes of the project; they hold this.
    table: Weak<dyn ProcessTable>,
    /// Held while the process is being started.
    state: tokio::sync::Mutex<State>,
    slot: Mutex<Slot>,
}

struct State {
    members: Vec<usize>,
    recent: VecDeque<Instant>,
    /// Times at which it was stopped for excessive use.
    excess: VecDeque<Instant>,
    off: Option<String>,
}

#[derive(Default)]
struct Slot {
    live: Option<Arc<Live>>,
    generation: u64,
    fault: Option<Fault>,
    pending: EventQueue,
    /// Number of events that it never saw, since the start.
    missed: u64,
    /// The only plugin in it, if there is just one.
    alone: Option<usize>,
    closed: bool,
}

impl Group {
    /// Creates a process of these plugins; it is not started yet.
    pub fn new(
        key: u64,
        name: String,
        launch: Arc<Launch>,
        members: Vec<usize>,
        table: Weak<dyn ProcessTable>,
    ) -> Arc<Self> {
        let state = State {
            members,
            recent: VecDeque::new(),
            excess: VecDeque::new(),
            off: None,
        };
        Arc::new(Self {
            key,
            name,
            launch,
            table,
            state: tokio::sync::Mutex::new(state),
            slot: Mutex::default(),
        })
    }

    /// Returns the plugins that run in it.
    pub async fn members(&self) -> Vec<usize> {
        self.state.lock().await.members.clone()
    }

    /// Creates a similar process for one of its plugins that leaves it. Generations continue from here, so that a
    /// handle never sees one twice.
    pub fn split_off(&self, key: u64, member: usize) -> Arc<Self> {
        let name = self
            .launch
            .registry
            .with(member, |plugin| plugin.id.clone());
        let launch = Arc::clone(&self.launch);
        let table = Weak::clone(&self.table);
        let group = Self::new(key, name.unwrap_or_default(), launch, vec![member], table);
        {
            let slot = self.slot();
            let mut fresh = group.slot();
            fresh.generation = slot.generation;
            fresh.pending.clone_from(&slot.pending);
        }
        group
    }

    /// Restarts the process without some of its plugins. This does not count as a failure.
    pub async fn restart_without(self: &Arc<Self>, leave: &[usize]) {
        let mut state = self.state.lock().await;
        state.members.retain(|member| !leave.contains(member));
        let old = {
            let mut slot = self.slot();
            slot.fault = None;
            slot.live.take()
        };
        if let Some(old) = old {
            let why = "a plugin that contributes authentication gets its own process";
            old.gone.send_replace(Some(Fault::by_host(why)));
            old.process.kill();
        }
        drop(state);
        if let Err(error) = self.live().await {
            tracing::warn!("plugin process {}: {error}", self.name);
        }
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        lock(&self.slot)
    }

    /// Returns the live process, if there is one, and the current generation.
    pub fn current(&self) -> (Option<Arc<Live>>, u64) {
        let slot = self.slot();
        (slot.live.clone(), slot.generation)
    }

    /// Returns the live process; waits for a restart in progress and starts one if the process has exited.
    ///
    /// The restart continues when the caller stops waiting, since others wait for it too.
    pub async fn live(self: &Arc<Self>) -> Result<Arc<Live>, String> {
        if let (Some(live), _) = self.current() {
            if live.process.is_alive() {
                self.flush(&mut self.slot(), &live);
                return Ok(live);
            }
            let ended = live.process.closed().await;
            let fault = Fault {
                cause: ended_by_itself(&ended, self.launch.settings.limits.memory),
                culprit: self.sole_suspect(&live.process.suspects()),
                counts: Counts::Crash,
            };
            self.mark_unusable(live.generation, fault);
        }
        let group = Arc::clone(self);
        tokio::spawn(async move { group.restart().await })
            .await
            .unwrap_or_else(|error| Err(format!("its start failed: {error}")))
    }

    /// Declares the process of that generation unusable. Every call to it ends now, and a new one is started.
    pub fn give_up(self: &Arc<Self>, generation: u64, fault: Fault) {
        if self.mark_unusable(generation, fault) {
            let group = Arc::clone(self);
            tokio::spawn(async move { group.restart().await });
        }
    }

    /// Returns whether a process is unusable after this error. A late process is left alone if timeouts do not cause
    /// restarts (A12).
    pub fn is_unusable_after(&self, error: &JsError) -> bool {
        let late = matches!(error, JsError::CallTimeout { .. });
        error.is_fatal() && (self.launch.settings.self_heal || !late)
    }

    /// Returns the only plugin that this code can belong to, or the only one in the process; `None` if unknown.
    pub fn sole_suspect(&self, entered: &[Enter]) -> Option<usize> {
        if let Some(alone) = self.slot().alone {
            return Some(alone);
        }
        let (first, rest) = entered.split_first()?;
        rest.iter()
            .all(|enter| enter.plugin == first.plugin)
            .then(|| self.launch.registry.index_of(&first.plugin))?
    }

    /// Returns whether several plugins run in it, so that the process itself claims which of them did something.
    pub fn is_shared(&self) -> bool {
        self.slot().alone.is_none()
    }

    /// Takes the process of that generation out of use and kills it. Returns `false` if it already was.
    fn mark_unusable(&self, generation: u64, fault: Fault) -> bool {
        let mut slot = self.slot();
        if slot.generation != generation {
            return false;
        }
        let Some(live) = slot.live.take() else {
            return false;
        };
        let mut fault = fault;
        let memory = self.launch.settings.limits.memory;
        fault.cause = live.held.cause(fault.cause, memory);
        slot.fault = Some(fault.clone());
        // Sent but not processed: its plugins are notified after the restart.
        let unseen = u64::try_from(live.process.unseen_events()).unwrap_or(u64::MAX);
        slot.pending.lost(unseen);
        slot.missed += unseen;
        drop(slot);
        tracing::warn!(
            "plugin process {} (generation {generation}) is started again: {}",
            self.name,
            fault.cause
        );
        live.gone.send_replace(Some(fault));
        // Something may still hold it: a login in progress, an unread body.
        live.process.kill();
        true
    }

    /// Starts the next process, unless another caller did. The last fault decides which plugins stay in it and whether it stays off.
    async fn restart(self: Arc<Self>) -> Result<Arc<Live>, String> {
        let mut state = self.state.lock().await;
        if let (Some(live), _) = self.current() {
            return Ok(live);
        }
        if let Some(off) = &state.off {
            return Err(off.clone());
        }
        let (fault, closed) = {
            let mut slot = self.slot();
            (slot.fault.take(), slot.closed)
        };
        if closed {
            return Err("its plugins have been disposed of".to_owned());
        }
        if let Some(fault) = fault {
            self.notify_restart(&state, &fault);
            let moved = self.isolate(&mut state, &fault);
            // The fault counts in the culprit's new process.
            if !moved {
                self.count_restart(&mut state, fault).await?;
            }
        }
        self.start(&mut state).await
    }

    fn names(&self, members: &[usize]) -> Vec<String> {
        members
            .iter()
            .filter_map(|i| self.launch.registry.with(*i, |p| p.id.clone()))
            .collect()
    }

    fn notify_restart(&self, state: &State, fault: &Fault) {
        (self.launch.notice)(Notice::Restart {
            plugins: self.names(&state.members),
            cause: fault.cause.clone(),
            culprit: fault.culprit.and_then(|index| self.names(&[index]).pop()),
        });
    }

    /// Notifies that the process is close to a limit.
    pub(crate) async fn notify_limit(&self, cause: String) {
        let plugins = self.names(&self.members().await);
        (self.launch.notice)(Notice::Limit { plugins, cause });
    }

    /// Kills the process if abandoned code does not return after a while: it will not return on its own, and plugins
    /// that share the process must be freed of it (A7, A13).
    pub fn kill_unless_returned(self: &Arc<Self>, generation: u64, enter: Enter) {
        if !self.launch.settings.self_heal {
            return;
        }
        let group = Arc::clone(self);
        tokio::spawn(async move {
            process_time::sleep(ABANDONED_TIMEOUT).await;
            let (Some(live), current) = group.current() else {
                return;
            };
            if current != generation || !live.process.all_entered().contains(&enter) {
                return;
            }
            let Some(index) = group.launch.registry.index_of(&enter.plugin) else {
                return;
            };
            let (plugin, what) = (enter.plugin.as_str(), &enter.what);
            let Late { culprit, who } = late(&group, &live, index, plugin, what, true).await;
            let fault = Fault {
                cause: format!(
                    "{who} went on for {} s after {} ({}) had been cancelled",
                    ABANDONED_TIMEOUT.as_secs(),
                    enter.plugin,
                    enter.what,
                ),
                culprit,
                counts: Counts::Nothing,
            };
            group.give_up(generation, fault);
        });
    }

    /// Lets the plugins dispose of their resources and ends the process, by force at the deadline. It is not restarted.
    pub async fn close(&self, deadline: Duration) {
        let live = {
            let mut slot = self.slot();
            slot.closed = true;
            slot.pending = EventQueue::default();
            slot.live.take()
        };
        let Some(live) = live else { return };
        let why = Fault::by_host("its plugins are being disposed of");
        live.gone.send_replace(Some(why));
        let end = process_time::Instant::now() + deadline;
        let mut live = live;
        // Calls release it as soon as they are polled again.
        let process = loop {
            match Arc::try_unwrap(live) {
                Ok(live) => break live.process,
                Err(held) if process_time::Instant::now() >= end => {
                    held.process.kill();
                    return;
                }
                Err(held) => {
                    live = held;
                    process_time::sleep(Duration::from_millis(5)).await;
                }
            }
        };
        let left = end.saturating_duration_since(process_time::Instant::now());
        if let Err(error) = process.shutdown(left).await {
            warn_undisposed(&self.name, &error);
        }
    }
}
