//! Starting a process and loading its plugins, in as many attempts as needed: a plugin that prevents it is skipped or gets
//! its own process, and a process that is restarted too often stays off (A13).

use std::sync::Arc;
use std::time::{Duration, Instant};

use outrigger_config::settings::Isolation;
use outrigger_plugin_status::{DETAIL, Notice, Stage};

use super::{Counts, Fault, Group, Live, State};
use crate::launch::{Failed, Loaded, Order};
use crate::reconfigure::reconfigure;
use crate::waiting::EventQueue;
use outrigger_plugin_registry::error::PluginError;

/// Pause before the second restart in a row; each later one is four times as long. The first has none: the next call must
/// work within 2 s (A7).
const BACKOFF: Duration = Duration::from_millis(100);
/// How often a process may be stopped for excessive use, and within which time.
const EXCESS: (usize, Duration) = (2, Duration::from_secs(600));

/// Returns the only plugin of a process, if there is just one.
pub(super) fn alone(members: &[usize]) -> Option<usize> {
    match members {
        [one] => Some(*one),
        _ => None,
    }
}

impl Group {
    /// Gives the culprit its own process, or every plugin if the culprit is unknown; returns true if a plugin left. Plugins
    /// with `isolation = "shared"` stay.
    pub(super) fn isolate(&self, state: &mut State, fault: &Fault) -> bool {
        let Some(processes) = self.table.upgrade() else {
            return false;
        };
        let registry = &self.launch.registry;
        let may_leave = |index: &usize| {
            registry.with(*index, |p| p.rules.isolation != Isolation::Shared) == Some(true)
        };
        let leaving: Vec<usize> = match (fault.culprit, state.members.as_slice()) {
            (_, [] | [_]) => return false,
            (Some(culprit), members) => {
                let them = members.iter().filter(|member| **member == culprit);
                them.copied().filter(may_leave).collect()
            }
            (None, [first, others @ ..]) => {
                let others: Vec<usize> = others.iter().copied().filter(may_leave).collect();
                // If the others stay together, the first one goes.
                let first = [*first].into_iter().filter(may_leave);
                if others.is_empty() {
                    first.collect()
                } else {
                    others
                }
            }
        };
        let cause = match fault.culprit {
            Some(_) => fault.cause.clone(),
            None => format!("{} (which plugin caused it is unknown)", fault.cause),
        };
        for index in &leaving {
            let group = self.split_off(processes.key(), *index);
            // An unclear fault is charged to no plugin: the process is split once, and then it becomes clear.
            if fault.culprit.is_some() {
                group.count(fault.counts);
            }
            // Before any call is directed there.
            processes.add(&group);
            registry.quarantine(*index, group.key, &cause);
            let version = registry.with(*index, |plugin| plugin.version_key());
            if let (Some(Some(version)), Some(_)) = (version, fault.culprit) {
                let now = (self.launch.now)();
                self.launch.faults.keep_quarantine(&version, &cause, now);
            }
            let why = fault
                .culprit
                .map_or(": which plugin caused it is unknown", |_| "");
            tracing::warn!(
                target: DETAIL,
                "plugin {}: it gets a process of its own{why}",
                group.name
            );
            (self.launch.notice)(Notice::Quarantine {
                plugin: group.name.clone(),
                cause: cause.clone(),
            });
            tokio::spawn(async move { group.restart().await });
        }
        state.members.retain(|member| !leaving.contains(member));
        !leaving.is_empty()
    }

    /// Counts its cause here. No one else has the process yet.
    fn count(&self, counts: Counts) {
        if let Ok(mut state) = self.state.try_lock() {
            match counts {
                Counts::Nothing => {}
                Counts::Crash | Counts::HeldUp => state.recent.push_back(Instant::now()),
                Counts::Excess => state.excess.push_back(Instant::now()),
            }
        }
    }

    /// Counts a restart, and refuses it if there have been too many.
    pub(super) async fn count_restart(
        &self,
        state: &mut State,
        fault: Fault,
    ) -> Result<(), String> {
        let limit = self.launch.settings.restarts;
        let (times, most, within) = match fault.counts {
            Counts::Nothing => return Ok(()),
            Counts::Crash | Counts::HeldUp => (&mut state.recent, limit.most, limit.within),
            Counts::Excess => (&mut state.excess, EXCESS.0, EXCESS.1),
        };
        let now = Instant::now();
        times.retain(|at| now.saturating_duration_since(*at) < within);
        if times.len() >= most {
            let error = PluginError::Off {
                process: self.name.clone(),
                restarts: times.len(),
                seconds: within.as_secs(),
                cause: fault.cause,
            };
            return Err(self.switch_off(state, &error));
        }
        times.push_back(now);
        if let Some(power) = u32::try_from(times.len())
            .ok()
            .and_then(|count| count.checked_sub(2))
        {
            tokio::time::sleep(BACKOFF.saturating_mul(4_u32.saturating_pow(power))).await;
        }
        Ok(())
    }

    fn switch_off(&self, state: &mut State, error: &PluginError) -> String {
        for index in state.members.drain(..) {
            match error {
                PluginError::Off { .. } => {
                    self.launch.registry.off(index, error);
                    let plugin = self.launch.registry.with(index, |p| p.id.clone());
                    (self.launch.notice)(Notice::Off {
                        plugin: plugin.unwrap_or_default(),
                        cause: error.to_string(),
                    });
                }
                _ => self.launch.registry.fail(index, error),
            }
        }
        self.slot().pending = EventQueue::default();
        let text = error.to_string();
        state.off = Some(text.clone());
        text
    }

    /// Starts the process and loads its plugins; a plugin that keeps the others from loading is removed and the rest tried
    /// again. Each round removes one or is the last, so this terminates.
    pub(super) async fn start(&self, state: &mut State) -> Result<Arc<Live>, String> {
        let registry = &self.launch.registry;
        let mut order = Order::Together;
        loop {
            if state.members.is_empty() {
                return Err(self.switch_off(state, &self.failed("no plugin of it is left")));
            }
            let generation = {
                let mut slot = self.slot();
                slot.generation += 1;
                slot.generation
            };
            for index in &state.members {
                registry.stage(*index, Stage::Starting);
            }
            match self.load(state, order).await {
                Ok(Some(loaded)) => {
                    return self.install(Live::new(loaded, generation), &state.members);
                }
                Ok(None) => {}
                Err(Failed::Culprit(index, error)) => {
                    registry.fail(index, &error);
                    state.members.retain(|member| *member != index);
                }
                Err(Failed::Unclear) if order == Order::Together => order = Order::OneByOne,
                Err(Failed::Unclear) => self.separate(state)?,
                // It ran before: an overloaded machine, or one without free processes, must not end its plugins.
                Err(Failed::Process(error)) if generation > 1 => self.retry(state, &error).await?,
                Err(Failed::Process(error)) => return Err(self.switch_off(state, &error)),
            }
        }
    }

    /// Starts one process with the remaining plugins and calls their `config` hooks again; `None` if none of them has
    /// anything to call.
    async fn load(&self, state: &mut State, order: Order) -> Result<Option<Loaded>, Failed> {
        let registry = &self.launch.registry;
        let mut loaded = self.launch.start(&self.name, &state.members, order).await?;
        let mut answers = std::mem::take(&mut loaded.plugins).into_iter();
        state
            .members
            .retain(|index| registry.adopt(*index, answers.next().unwrap_or_default()));
        if state.members.is_empty() {
            return Ok(None);
        }
        let deadline = self.launch.settings.deadlines.load;
        let again = reconfigure(&loaded.process, registry, &state.members, deadline).await;
        let warnings = again.map_err(|(index, error)| Failed::Culprit(index, error))?;
        registry.warn_all(warnings);
        Ok(Some(loaded))
    }

    /// Gives each plugin its own process: they were loaded one after another, and still none of their own code was at
    /// fault.
    fn separate(&self, state: &mut State) -> Result<(), String> {
        let error = self.failed("it did not answer while it loaded plugins");
        let fault = Fault {
            cause: "it did not answer while it loaded plugins".to_owned(),
            culprit: None,
            counts: Counts::Nothing,
        };
        if self.isolate(state, &fault) {
            Ok(())
        } else {
            Err(self.switch_off(state, &error))
        }
    }

    /// The process could not be started: that counts as a restart, and is tried again.
    async fn retry(&self, state: &mut State, error: &PluginError) -> Result<(), String> {
        tracing::warn!("plugin process {}: {error}", self.name);
        let fault = Fault {
            cause: error.to_string(),
            culprit: None,
            counts: Counts::Crash,
        };
        self.notify_restart(state, &fault);
        self.count_restart(state, fault).await?;
        if self.slot().closed {
            Err("its plugins have been disposed of".to_owned())
        } else {
            Ok(())
        }
    }

    /// Directs calls to it. Events that waited are sent first.
    fn install(&self, live: Live, members: &[usize]) -> Result<Arc<Live>, String> {
        let live = Arc::new(live);
        let mut slot = self.slot();
        if slot.closed {
            return Err("its plugins have been disposed of".to_owned());
        }
        self.flush(&mut slot, &live);
        if let Some(processes) = self.table.upgrade() {
            processes.begins(self.key, &live);
        }
        slot.live = Some(Arc::clone(&live));
        slot.alone = alone(members);
        Ok(live)
    }
}
