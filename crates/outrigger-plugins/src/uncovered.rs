//! Files that a rule denies and that were saved anew: most editors write another file and rename it, and what covers the old
//! one in a running process does not cover that. Such a process is replaced by one that is started now.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use outrigger_sandbox::covers::Kept;

use crate::group::{Counts, Fault, Group};
use crate::processes::Processes;

/// Between two looks.
const EVERY: Duration = Duration::from_millis(250);

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
