//! Whose the CPU time of plugin processes is (A1, A13): what a process used between two looks is charged to the plugin that
//! holds its thread at the second one, or to the one that lives there alone. Where that is nobody or several, it is charged
//! to nobody.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use outrigger_files::sync::lock;
use outrigger_sandbox::usage;

use crate::group::{Group, Live};

#[derive(Default)]
struct Entries {
    /// CPU time of a process at the last look, by process key, with its generation.
    seen: HashMap<u64, (u64, Duration)>,
    /// Charged to a plugin, by index, and not yet written down.
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

    /// What a process used until it was ready is the price of its start, and no call's.
    pub(crate) fn begin(&self, key: u64, live: &Live) {
        let used = usage::usage(live.process.pid()).unwrap_or_default();
        self.entries().seen.insert(key, (live.generation, used.cpu));
    }

    /// Looks at a process and charges what it used since the last time; to `held` where nobody holds its thread now.
    pub fn look(&self, group: &Group, live: &Live, held: Option<usize>) {
        if let Some(used) = usage::usage(live.process.pid()) {
            self.charge(group, live, used.cpu, held);
        }
    }

    /// It has used so much since it was started.
    pub(crate) fn charge(&self, group: &Group, live: &Live, cpu: Duration, held: Option<usize>) {
        let suspects = live.process.suspects();
        let held = held.filter(|_| suspects.is_empty());
        let whose = group.only(&suspects).or(held);
        self.entries()
            .charge((group.key, live.generation), cpu, whose);
    }

    /// What is charged to a plugin and was not taken before, in milliseconds.
    pub fn take(&self, plugin: usize) -> Option<f64> {
        let due = self.entries().due.remove(&plugin)?;
        Some(due.as_secs_f64() * 1000.0)
    }

    /// The process is over; what was charged stays.
    pub(crate) fn forget(&self, key: u64) {
        self.entries().seen.remove(&key);
    }

    /// What was charged to a plugin since the start.
    pub fn of(&self, plugin: usize) -> Duration {
        self.entries().all.get(&plugin).copied().unwrap_or_default()
    }
}

impl Entries {
    fn charge(&mut self, (key, generation): (u64, u64), cpu: Duration, whose: Option<usize>) {
        let before = self.seen.insert(key, (generation, cpu));
        // Of a process that was never seen, this is where it begins.
        let Some((_, before)) = before.filter(|(known, _)| *known == generation) else {
            return;
        };
        // A child that ended without having been waited for takes its time with it.
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
                // The first look is where it begins.
                ((1, 1), ms(100), Some(7)),
                ((1, 1), ms(150), Some(7)),
                ((1, 1), ms(250), None),
                ((1, 1), ms(260), Some(8)),
                // Started again: it has its own beginning.
                ((1, 2), ms(90), Some(7)),
                ((1, 2), ms(1090), Some(7)),
                // Less than before: a child has gone.
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
