//! Denied files that were saved again: most editors write another file and rename it, and the mask of the old one in a
//! running process does not cover the new one. Such a process is replaced by a new one.

use std::collections::HashSet;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use outrigger_sandbox::process_time::{Instant, sleep_until, timeout_at};
use outrigger_sandbox::stale_masks::CHECK_INTERVAL;
use outrigger_stdx::sync::lock;

use crate::group::{Fault, Group, Live};
use crate::processes::Processes;

/// Time that a process keeps its view, so that the next one can take over and calls can complete.
const GRACE: Duration = Duration::from_millis(500);

/// A process that sees what it should not.
struct StaleProcess {
    group: Arc<Group>,
    generation: u64,
    live: Weak<Live>,
    path: PathBuf,
}

fn look(group: Arc<Group>) -> Option<StaleProcess> {
    let live = group.current().0?;
    let path = live.replaced()?.to_path_buf();
    Some(StaleProcess {
        generation: live.generation,
        live: Arc::downgrade(&live),
        group,
        path,
    })
}

/// Watches until the plugins are dropped.
pub fn watch(processes: &Arc<Processes>) {
    let processes = Arc::downgrade(processes);
    // Keys of the processes that are being replaced now.
    let renewed: Arc<Mutex<HashSet<u64>>> = Arc::default();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            let Some(processes) = Weak::upgrade(&processes) else {
                return;
            };
            let mut groups = processes.all();
            drop(processes);
            groups.retain(|group| !lock(&renewed).contains(&group.key));
            // There may be many files, on a slow disk.
            let look_at_all = move || {
                groups
                    .into_iter()
                    .filter_map(look)
                    .collect::<Vec<StaleProcess>>()
            };
            let found = tokio::task::spawn_blocking(look_at_all).await;
            for found in found.unwrap_or_default() {
                let (key, renewed) = (found.group.key, Arc::clone(&renewed));
                lock(&renewed).insert(key);
                tokio::spawn(async move {
                    renew(found).await;
                    lock(&renewed).remove(&key);
                });
            }
        }
    });
}

/// Replaces a process. Even if the new one fails, the old one is killed after [`GRACE`], with its calls.
async fn renew(found: StaleProcess) {
    let StaleProcess {
        group,
        generation,
        live,
        path,
    } = found;
    let end = Instant::now() + GRACE;
    tracing::info!(
        "plugin process {}: {}, which a rule denies, was saved anew: it is replaced",
        group.name,
        path.display()
    );
    const WHY: &str = "a file that a rule denies was saved anew";
    let mut next = pin!(group.renew());
    let made = match timeout_at(end, &mut next).await {
        Ok(made) => made,
        Err(_) => {
            group.give_up(generation, Fault::by_host(WHY));
            next.await
        }
    };
    match made {
        Ok(_) => sleep_until(end).await,
        Err(error) => {
            tracing::warn!("plugin process {}: it is ended: {error}", group.name);
            group.give_up(generation, Fault::by_host(WHY));
        }
    }
    if let Some(live) = live.upgrade() {
        live.end(WHY);
    }
}
