//! Attribution of CPU time (A1, A13): the time that a process used between two measurements is charged to the plugin that
//! holds its thread at the second one, or to the only plugin in it. If there is none or several, it is charged to no
//! plugin.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use outrigger_sandbox::usage;
use outrigger_stdx::sync::lock;

use crate::group::{Group, Live};

#[derive(Default)]
struct Entries {
    /// CPU time of a process at the last measurement, by process key, with its generation.
    seen: HashMap<u64, (u64, Duration)>,
    /// Charged to a plugin, by index, and not yet recorded.
    due: HashMap<usize, Duration>,
    /// Charged to a plugin since the start, by index.
    all: HashMap<usize, Duration>,
}

/// The charges. They outlive the processes.
#[derive(Default)]
pub struct Charges(Mutex<Entries>);

impl Charges {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        lock(&self.0)
    }

    /// Starts counting: time used until the process was ready is the cost of its start, not of a call.
    pub(crate) fn begin(&self, key: u64, live: &Live) {
        let used = usage::usage(live.process.pid()).unwrap_or_default();
        self.entries().seen.insert(key, (live.generation, used.cpu));
    }

    /// Measures a process and charges the difference; to `held` if no plugin holds its thread now.
    pub fn look(&self, group: &Group, live: &Live, held: Option<usize>) {
        if let Some(used) = usage::usage(live.process.pid()) {
            self.charge(group, live, used.cpu, held);
        }
    }

    /// Charges a process with its CPU time since its start.
    pub(crate) fn charge(&self, group: &Group, live: &Live, cpu: Duration, held: Option<usize>) {
        let suspects = live.process.suspects();
        let held = held.filter(|_| suspects.is_empty());
        let whose = group.sole_suspect(&suspects).or(held);
        self.entries()
            .charge((group.key, live.generation), cpu, whose);
    }

    /// Takes the time charged to a plugin since the last call, in milliseconds.
    pub fn take(&self, plugin: usize) -> Option<f64> {
        let due = self.entries().due.remove(&plugin)?;
        Some(due.as_secs_f64() * 1000.0)
    }

    /// Forgets an ended process; its charges stay.
    pub(crate) fn forget(&self, key: u64) {
        self.entries().seen.remove(&key);
    }

    /// Returns the time charged to a plugin since the start.
    pub fn of(&self, plugin: usize) -> Duration {
        self.entries().all.get(&plugin).copied().unwrap_or_default()
    }
}

impl Entries {
    fn charge(&mut self, (key, generation): (u64, u64), cpu: Duration, whose: Option<usize>) {
        let before = self.seen.insert(key, (generation, cpu));
        // The first measurement of a process is its baseline.
        let Some((_, before)) = before.filter(|(known, _)| *known == generation) else {
            return;
        };
        // The time of a child that exited without being waited for disappears.
        let used = cpu.saturating_sub(before);
        if let Some(plugin) = whose.filter(|_| !used.is_zero()) {
            *self.due.entry(plugin).or_default() += used;
            *self.all.entry(plugin).or_default() += used;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_between_two_looks_is_charged_once_to_whom_it_was() {
        let charges = Charges::default();
        let ms = Duration::from_millis;
        {
            let mut entries = charges.entries();
            for (process, cpu, whose) in [
                // The first measurement is the baseline.
                ((1, 1), ms(100), Some(7)),
                ((1, 1), ms(150), Some(7)),
                ((1, 1), ms(250), None),
                ((1, 1), ms(260), Some(8)),
                // A restart has a new baseline.
                ((1, 2), ms(90), Some(7)),
                ((1, 2), ms(1090), Some(7)),
                // Less than before: a child has exited.
                ((1, 2), ms(1000), Some(7)),
                ((2, 2), ms(5), Some(8)),
                ((2, 2), ms(15), Some(8)),
            ] {
                entries.charge(process, cpu, whose);
            }
        }
        assert_eq!((charges.of(7), charges.of(8)), (ms(1050), ms(20)));
        assert_eq!(charges.take(7), Some(1050.0));
        assert_eq!(charges.take(7), None);
        assert_eq!(charges.of(7), ms(1050));
    }
}
