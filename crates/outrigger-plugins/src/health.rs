//! The periodic health check (C7): a plugin process that nobody calls is asked whether it takes requests. One that does not, twice
//! in a row, is ended and started again. While calls are open to it their deadlines decide.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::group::{Counts, Fault, Group};
use crate::processes::Processes;

/// So many checks in a row a process may not answer.
const MOST: u32 = 2;

/// How often and how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rhythm {
    /// Between two checks.
    pub(crate) every: Duration,
    /// An answer takes no longer.
    pub(crate) deadline: Duration,
}

/// Checks until the plugins are gone.
pub(crate) fn check(processes: &Arc<Processes>, rhythm: Rhythm) {
    let processes = Arc::downgrade(processes);
    let silent: Arc<Mutex<HashMap<u64, (u64, u32)>>> = Arc::default();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(rhythm.every).await;
            let Some(processes) = processes.upgrade() else {
                return;
            };
            for group in processes.all() {
                let silent = Arc::clone(&silent);
                tokio::spawn(async move { ask(&group, rhythm.deadline, &silent).await });
            }
        }
    });
}

async fn ask(group: &Arc<Group>, deadline: Duration, silent: &Mutex<HashMap<u64, (u64, u32)>>) {
    let (Some(live), _) = group.now() else { return };
    if !live.process.is_alive() || live.process.is_working() {
        return;
    }
    let answers = live.process.responds(deadline).await;
    let times = {
        let mut silent = silent.lock().unwrap_or_else(PoisonError::into_inner);
        let (generation, times) = silent.entry(group.key).or_default();
        if answers || *generation != live.generation {
            *times = 0;
        }
        *generation = live.generation;
        *times += u32::from(!answers);
        *times
    };
    // A call that came meanwhile has a deadline of its own.
    if answers || live.process.is_working() || live.given_up().is_some() {
        return;
    }
    tracing::warn!(
        "plugin process {}: no answer to a health check within {} ms",
        group.name,
        deadline.as_millis()
    );
    if times < MOST {
        return;
    }
    let suspects = live.process.suspects();
    let fault = Fault {
        cause: format!(
            "it did not answer {MOST} health checks in a row, {} ms each",
            deadline.as_millis()
        ),
        culprit: group.only(&suspects),
        counts: Counts::Crash,
    };
    group.give_up(live.generation, fault);
}
