//! Files that a rule denies and that were saved anew: most editors write another file and rename it, and what covers the old
//! one in a running process does not cover that. Such a process is replaced by one that is started now.

use std::path::Path;
use std::sync::{Arc, Weak};

use outrigger_sandbox::covers::Kept;
use outrigger_sandbox::uncovered::{EVERY, Hidden};

use crate::group::{Counts, Fault, Group};
use crate::processes::Processes;

/// Of what is kept from a process, what lies in these folders: it could read the rest in no case.
pub(crate) fn hidden(kept: &Kept, folders: [&Path; 2]) -> Hidden {
    let hidden = kept.covers().hide.iter();
    Hidden::of(hidden.filter(|path| folders.iter().any(|folder| path.starts_with(folder))))
}

/// Looks until the plugins are gone.
pub(crate) fn watch(processes: &Arc<Processes>) {
    let processes = Arc::downgrade(processes);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(EVERY).await;
            let Some(processes) = Weak::upgrade(&processes) else {
                return;
            };
            for group in processes.all() {
                renew(&group).await;
            }
        }
    });
}

async fn renew(group: &Arc<Group>) {
    let (Some(live), generation) = group.now() else {
        return;
    };
    let Some(path) = live.replaced() else { return };
    let path = path.display().to_string();
    drop(live);
    tracing::info!(
        "plugin process {}: {path}, which a rule denies, was saved anew: it is replaced",
        group.name
    );
    if let Err(error) = group.renew().await {
        // It must not go on with what it sees now.
        tracing::warn!("plugin process {}: it is ended: {error}", group.name);
        let fault = Fault {
            cause: "a file that a rule denies was saved anew".to_owned(),
            culprit: None,
            counts: Counts::Nothing,
        };
        group.give_up(generation, fault);
    }
}
