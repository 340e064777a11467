//! Measures the resource use of plugin processes once a second, and stops those that use too much.

use std::sync::{Arc, Weak};
use std::time::Duration;

use outrigger_sandbox::process_time::{self, Instant};
use outrigger_sandbox::usage;
use outrigger_stdx::sync::lock;

use crate::blame::PING;
use crate::blame::named;
use crate::group::{Counts, Fault, Group, Live};
use crate::processes::Processes;
use crate::watch::resource_limits::{Gauge, Verdict};
use outrigger_plugin_registry::access::settings::ProcessLimits;

/// Between two looks.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// `nice` value of a process that uses CPU with nothing to do.
const NICE: i32 = 10;

/// Watches until the plugins are dropped.
///
/// `stuck` is the time that a process may leave events unprocessed; `None` if it is not to be killed for that.
pub fn watch(processes: &Arc<Processes>, limits: ProcessLimits, stuck: Option<Duration>) {
    let stuck = stuck.unwrap_or(Duration::MAX);
    let processes = Arc::downgrade(processes);
    tokio::spawn(async move {
        let began = Instant::now();
        loop {
            process_time::sleep(CHECK_INTERVAL).await;
            let Some(processes) = Weak::upgrade(&processes) else {
                return;
            };
            for group in processes.all() {
                look(&group, &processes, began.elapsed(), &limits, stuck);
            }
        }
    });
}

/// Kills a process that does not yield the thread and whose plugins only listen: with no open call, no deadline
/// finds it.
async fn end_if_stuck(group: &Arc<Group>, live: &Live, stuck: Duration) {
    if live.process.responds(PING).await || live.given_up().is_some() {
        return;
    }
    let suspects = live.process.suspects();
    let cause = format!(
        "{} did not release the thread for {} ms, while events waited",
        named(&suspects),
        stuck.as_millis()
    );
    let fault = Fault {
        cause,
        culprit: group.sole_suspect(&suspects),
        counts: Counts::Crash,
    };
    group.give_up(live.generation, fault);
}

/// A start holds the lock on the plugin names, and the watch does not wait for it.
fn notify(group: &Arc<Group>, why: String) {
    let group = Arc::clone(group);
    tokio::spawn(async move { group.notify_limit(why).await });
}

fn look(
    group: &Arc<Group>,
    processes: &Processes,
    now: Duration,
    limits: &ProcessLimits,
    stuck: Duration,
) {
    let (Some(live), _) = group.current() else {
        return;
    };
    if !live.process.is_alive() {
        // Restart it for its events before the next call.
        let group = Arc::clone(group);
        tokio::spawn(async move { group.live().await });
        return;
    }
    let pid = live.process.pid();
    let Some(usage) = usage::usage(pid) else {
        return;
    };
    if live.process.unseen_for().is_some_and(|age| age > stuck) {
        let (group, live) = (Arc::clone(group), Arc::clone(&live));
        tokio::spawn(async move { end_if_stuck(&group, &live, stuck).await });
    }
    processes.charges.charge(group, &live, usage.cpu, None);
    let working = live.process.is_working();
    let verdict = {
        let readings = &processes.readings;
        let mut readings = lock(&readings.0);
        let entry = readings.entry(group.key).or_default();
        if entry.0 != live.generation {
            *entry = (live.generation, Gauge::default(), usage);
        }
        entry.2 = usage;
        entry.1.read(now, usage, working, limits)
    };
    if let Some(verdict) = verdict {
        enforce(group, &live, verdict);
    }
}

/// Slows down, reports or kills a process that uses too much.
fn enforce(group: &Arc<Group>, live: &Live, verdict: Verdict) {
    match verdict {
        Verdict::Slow(why) => {
            let pid = live.process.pid();
            tracing::warn!(
                "plugin process {}: {why}; it is put behind others",
                group.name
            );
            if let Some(start) = outrigger_sandbox::start_time(pid) {
                usage::lower_priority(pid, start, NICE);
            }
            notify(group, why);
        }
        Verdict::Full(why) => {
            tracing::warn!("plugin process {}: {why}; it is refused more", group.name);
            notify(group, why);
        }
        Verdict::Stop(cause) => {
            // The culprit is unknown: memory allocated long ago is not charged to a plugin that happens to be
            // called now.
            let fault = Fault {
                cause,
                culprit: group.sole_suspect(&[]),
                counts: Counts::Excess,
            };
            group.give_up(live.generation, fault);
        }
    }
}
