//! Looks once a second at what plugin processes use, and stops those that use too much.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use outrigger_files::sync::lock;
use outrigger_sandbox::usage;

use crate::blame::PING;
use crate::blame::named;
use crate::group::{Counts, Fault, Group, Live};
use crate::processes::Processes;
use crate::watch::resource_limits::{Gauge, Verdict};
use outrigger_plugin_registry::access::settings::ProcessLimits;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);
/// `nice` of a process that burns CPU with nothing to do.
const NICE: i32 = 10;

/// Watches until the plugins are gone.
///
/// `stuck` is for how long a process may leave events lying; none where nothing is to be ended for its time.
pub fn watch(processes: &Arc<Processes>, limits: ProcessLimits, stuck: Option<Duration>) {
    let stuck = stuck.unwrap_or(Duration::MAX);
    let processes = Arc::downgrade(processes);
    tokio::spawn(async move {
        let began = Instant::now();
        loop {
            tokio::time::sleep(EVERY).await;
            let Some(processes) = Weak::upgrade(&processes) else {
                return;
            };
            for group in processes.all() {
                look(&group, &processes, began.elapsed(), &limits, stuck);
            }
        }
    });
}

/// No call is open to a process whose plugins only listen, so no deadline finds one that does not yield the thread.
async fn end_if_stuck(group: &Arc<Group>, live: &Live, stuck: Duration) {
    if live.process.responds(PING).await || live.given_up().is_some() {
        return;
    }
    let suspects = live.process.suspects();
    let cause = format!(
        "{} did not let go of the thread for {} ms, while events waited",
        named(&suspects),
        stuck.as_millis()
    );
    let fault = Fault {
        cause,
        culprit: group.only(&suspects),
        counts: Counts::Crash,
    };
    group.give_up(live.generation, fault);
}

/// A start holds what names the plugins, and the watch waits for none.
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
    let (Some(live), _) = group.now() else { return };
    if !live.process.is_alive() {
        // It is there again for its events before anybody calls it.
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

/// Slows a process down that uses too much, notifies of it, or ends it.
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
            // Whose it is is not known: what was taken long ago is charged to nobody who happens to be called now.
            let fault = Fault {
                cause,
                culprit: group.only(&[]),
                counts: Counts::Excess,
            };
            group.give_up(live.generation, fault);
        }
    }
}
