//! Files that a rule denies and that were saved anew: most editors write another file and rename it, and what covers the old
//! one in a running process does not cover that. Such a process is replaced by one that is started now.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use outrigger_sandbox::covers::Kept;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::group::{Fault, Group, Live};
use crate::locked as lock;
use crate::processes::Processes;

/// Between two looks.
const EVERY: Duration = Duration::from_millis(250);
/// How long a process goes on with what it sees, so that the next one takes over and calls come to their end.
const GRACE: Duration = Duration::from_millis(500);

/// What of a project a process does not see, as it was when the process was started.
#[derive(Default)]
pub(crate) struct Hidden(Vec<(PathBuf, Option<(u64, u64)>)>);

impl Hidden {
    /// Of what is kept from the process, what lies in these folders: it could read the rest in no case. Not what lies in
    /// `ours`: that is written to by this program, and the folder is covered as a whole.
    pub(crate) fn of(kept: &Kept, folders: [&Path; 2], ours: &Path) -> Self {
        let hidden = kept.covers().hide.iter();
        let reached = hidden.filter(|path| {
            folders.iter().any(|folder| path.starts_with(folder)) && !path.starts_with(ours)
        });
        Self(reached.map(|path| (path.clone(), identity(path))).collect())
    }

    /// One that is another file now.
    pub(crate) fn replaced(&self) -> Option<&Path> {
        let mut all = self.0.iter();
        let replaced = |(path, was): &&(PathBuf, Option<(u64, u64)>)| {
            let now = identity(path);
            now.is_some() && now != *was
        };
        all.find(replaced).map(|(path, _)| path.as_path())
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let meta = fs::metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}

/// A process that sees what it should not.
struct Found {
    group: Arc<Group>,
    generation: u64,
    live: Weak<Live>,
    path: PathBuf,
}

fn look(group: Arc<Group>) -> Option<Found> {
    let live = group.now().0?;
    let path = live.replaced()?.to_path_buf();
    Some(Found {
        generation: live.generation,
        live: Arc::downgrade(&live),
        group,
        path,
    })
}

/// Looks until the plugins are gone.
pub(crate) fn watch(processes: &Arc<Processes>) {
    let processes = Arc::downgrade(processes);
    // Those that are being replaced now, by key.
    let renewed: Arc<Mutex<HashSet<u64>>> = Arc::default();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(EVERY).await;
            let Some(processes) = Weak::upgrade(&processes) else {
                return;
            };
            let mut groups = processes.all();
            drop(processes);
            groups.retain(|group| !lock(&renewed).contains(&group.key));
            // Many files, which may lie on a slow disk.
            let look_at_all = move || groups.into_iter().filter_map(look).collect::<Vec<Found>>();
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

/// Replaces a process. Whatever becomes of the new one, the old one is gone after [`GRACE`], with the calls that it has.
async fn renew(found: Found) {
    let Found {
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
    let fault = Fault::ours("a file that a rule denies was saved anew");
    let mut next = pin!(group.renew());
    let made = match timeout_at(end, &mut next).await {
        Ok(made) => made,
        Err(_) => {
            group.give_up(generation, fault.clone());
            next.await
        }
    };
    match made {
        Ok(_) => sleep_until(end).await,
        Err(error) => {
            tracing::warn!("plugin process {}: it is ended: {error}", group.name);
            group.give_up(generation, fault.clone());
        }
    }
    if let Some(live) = live.upgrade() {
        live.end(fault);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_sandbox::CoversFn;
    use outrigger_sandbox::covers::Covers;

    #[test]
    fn what_is_saved_anew_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at(".env"), "a").unwrap();
        let covers = Covers {
            hide: vec![at(".env"), "/elsewhere".into(), at("data/store.db")],
            ..Covers::default()
        };
        let again: CoversFn = Arc::new(|| Ok(Covers::default()));
        let hidden = Hidden::of(
            &Kept::new(covers, again),
            [dir.path(), dir.path()],
            &at("data"),
        );
        assert_eq!(hidden.0.len(), 1);
        fs::write(at(".env"), "in its place").unwrap();
        assert_eq!(hidden.replaced(), None);
        fs::write(at(".env.new"), "b").unwrap();
        fs::rename(at(".env.new"), at(".env")).unwrap();
        assert_eq!(hidden.replaced(), Some(at(".env").as_path()));
        fs::remove_file(at(".env")).unwrap();
        assert_eq!(hidden.replaced(), None);
    }
}
