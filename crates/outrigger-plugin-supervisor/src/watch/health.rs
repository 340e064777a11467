//! The periodic health check (C7): an idle plugin process is asked whether it takes requests. A process that fails to answer
//! twice in a row is killed and restarted. While calls are open to it, their deadlines decide.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_sandbox::process_time;
use outrigger_stdx::sync::lock;

use crate::group::{Counts, Fault, Group, Live};
use crate::processes::Processes;

/// Maximum number of unanswered checks in a row.
const MAX_SILENT: u32 = 2;

/// Interval and deadline of the checks.
#[derive(Clone, Copy, Debug)]
pub struct Rhythm {
    /// Time between two checks.
    pub every: Duration,
    /// Maximum time for an answer.
    pub deadline: Duration,
}

/// Results of the checks of each process.
#[derive(Default)]
struct Silent(HashMap<u64, Checks>);

#[derive(Default)]
struct Checks {
    generation: u64,
    /// Number of unanswered checks in a row.
    times: u32,
    /// A check is in progress: a second one would count the same silence twice.
    asks: bool,
}

impl Silent {
    /// Returns whether a check may start now.
    fn begin(&mut self, key: u64) -> bool {
        !std::mem::replace(&mut self.0.entry(key).or_default().asks, true)
    }

    /// Forgets exited processes.
    fn keep(&mut self, keys: &HashSet<u64>) {
        self.0.retain(|key, _| keys.contains(key));
    }

    /// Returns how many checks in a row were unanswered. `None`: it was not checked.
    fn end(&mut self, key: u64, asked: Option<(u64, bool)>) -> u32 {
        let Some(checks) = self.0.get_mut(&key) else {
            return 0;
        };
        checks.asks = false;
        let Some((generation, answers)) = asked else {
            return checks.times;
        };
        if answers || checks.generation != generation {
            checks.times = 0;
        }
        checks.generation = generation;
        checks.times += u32::from(!answers);
        checks.times
    }
}

/// Runs checks until the plugins are dropped.
pub fn check(processes: &Arc<Processes>, rhythm: Rhythm) {
    let processes = Arc::downgrade(processes);
    let silent: Arc<Mutex<Silent>> = Arc::default();
    tokio::spawn(async move {
        loop {
            process_time::sleep(rhythm.every).await;
            let Some(processes) = processes.upgrade() else {
                return;
            };
            let groups = processes.all();
            lock(&silent).keep(&groups.iter().map(|group| group.key).collect());
            for group in groups {
                if !lock(&silent).begin(group.key) {
                    continue;
                }
                let silent = Arc::clone(&silent);
                tokio::spawn(async move { ask(&group, rhythm.deadline, &silent).await });
            }
        }
    });
}

/// Checks an old generation that only held resources keep alive; an unresponsive one is killed and not replaced.
pub(crate) fn check_old(name: String, old: &Arc<Live>, rhythm: Rhythm) {
    let old = Arc::downgrade(old);
    tokio::spawn(async move {
        let mut silent = 0;
        loop {
            process_time::sleep(rhythm.every).await;
            let Some(live) = old.upgrade().filter(|live| live.process.is_alive()) else {
                return;
            };
            if live.process.is_working() {
                continue;
            }
            let answers = live.process.responds(rhythm.deadline).await;
            silent = if answers || live.process.is_working() {
                0
            } else {
                silent + 1
            };
            if silent == MAX_SILENT {
                let cause = format!("it did not answer {MAX_SILENT} health checks in a row");
                tracing::warn!(
                    "plugin process {name} (its generation before this one): {cause}; it is ended"
                );
                live.end(&cause);
                return;
            }
        }
    });
}

async fn ask(group: &Arc<Group>, deadline: Duration, silent: &Mutex<Silent>) {
    let live = group.current().0;
    let live = live.filter(|live| live.process.is_alive() && !live.process.is_working());
    let Some(live) = live else {
        lock(silent).end(group.key, None);
        return;
    };
    let answers = live.process.responds(deadline).await;
    let times = lock(silent).end(group.key, Some((live.generation, answers)));
    // A call that arrived meanwhile has its own deadline.
    if answers || live.process.is_working() || live.given_up().is_some() {
        return;
    }
    tracing::warn!(
        "plugin process {}: no answer to a health check within {} ms",
        group.name,
        deadline.as_millis()
    );
    if times < MAX_SILENT {
        return;
    }
    let suspects = live.process.suspects();
    let fault = Fault {
        cause: format!(
            "it did not answer {MAX_SILENT} health checks in a row, {} ms each",
            deadline.as_millis()
        ),
        culprit: group.sole_suspect(&suspects),
        counts: Counts::Crash,
    };
    group.give_up(live.generation, fault);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_counts_once_and_what_is_gone_is_forgotten() {
        let mut silent = Silent::default();
        assert!(silent.begin(1) && silent.begin(2));
        // The next check is due while the first one still waits.
        assert!(!silent.begin(1));
        assert_eq!(silent.end(1, Some((5, false))), 1);
        assert!(silent.begin(1));
        assert_eq!(silent.end(1, None), 1);
        assert!(silent.begin(1));
        assert_eq!(silent.end(1, Some((5, false))), 2);
        // Another process, or an answer, starts again.
        assert_eq!(silent.end(1, Some((6, false))), 1);
        assert_eq!(silent.end(1, Some((6, true))), 0);
        silent.keep(&HashSet::from([2]));
        assert_eq!(silent.0.len(), 1);
        assert_eq!(silent.end(1, Some((6, false))), 0);
    }
}
