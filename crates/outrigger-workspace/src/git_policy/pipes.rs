//! Pipes in place of files that git reads in every folder of a project. A search each time would cost more than git itself: they are
//! searched once git takes long, and remembered while they exist.

use std::collections::{BTreeMap, VecDeque};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use outrigger_stdx::sync::lock;

/// Files that git reads in every folder.
const IN_EVERY_FOLDER: [&str; 2] = [".gitattributes", ".gitignore"];
/// How long git may take before the search for what it may be waiting for.
const LOOKS_AFTER: Duration = Duration::from_secs(2);
/// Maximum number of names in the search.
const MAX_NAMES: usize = 1_000_000;

/// Pipes found, by worktree.
static FOUND: Mutex<BTreeMap<PathBuf, PathBuf>> = Mutex::new(BTreeMap::new());

/// Returns the known pipe in a worktree, while it exists.
pub(super) fn known(worktree: &Path) -> Option<PathBuf> {
    let mut all = lock(&FOUND);
    let pipe = all.get(worktree)?.clone();
    if !is_pipe(&pipe) {
        all.remove(worktree);
        return None;
    }
    Some(pipe)
}

/// Waits for git in a worktree. If it takes long and waits for a pipe, it is ended, and the error names the pipe.
///
/// # Errors
/// As a sentence.
pub async fn watched<T>(worktree: &Path, git: impl Future<Output = T>) -> Result<T, String> {
    tokio::pin!(git);
    if let Ok(done) = tokio::time::timeout(LOOKS_AFTER, &mut git).await {
        return Ok(done);
    }
    let folder = worktree.to_owned();
    let look = tokio::task::spawn_blocking(move || first_in(&folder));
    let found = tokio::select! {
        done = &mut git => return Ok(done),
        found = look => found.ok().flatten(),
    };
    let Some(pipe) = found else {
        return Ok(git.await);
    };
    let why = waits_for(&pipe);
    lock(&FOUND).insert(worktree.to_owned(), pipe);
    Err(why)
}

pub(super) fn waits_for(pipe: &Path) -> String {
    format!("git is not started for {}: it is a FIFO", pipe.display())
}

fn is_pipe(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|it| it.file_type().is_fifo())
}

/// Returns the first pipe with such a name. Reads the disk.
fn first_in(worktree: &Path) -> Option<PathBuf> {
    let mut folders = VecDeque::from([worktree.to_owned()]);
    let mut left = MAX_NAMES;
    while let Some(folder) = folders.pop_front() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            left = left.checked_sub(1)?;
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let name = entry.file_name();
            if kind.is_fifo() && IN_EVERY_FOLDER.iter().any(|it| name == *it) {
                return Some(entry.path());
            }
            if kind.is_dir() && name != ".git" {
                folders.push_back(entry.path());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use rustix::fs::Mode;

    use super::*;

    #[tokio::test]
    async fn git_that_waits_for_a_pipe_is_ended_and_not_started_again() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b");
        std::fs::create_dir_all(&folder).unwrap();
        let done = watched(root.path(), async { 1 }).await;
        assert_eq!(done, Ok(1));
        // One that is just slow.
        let long = tokio::time::sleep(LOOKS_AFTER + Duration::from_millis(100));
        assert_eq!(watched(root.path(), long).await, Ok(()));
        let pipe = folder.join(".gitignore");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        assert_eq!(super::super::unfit(root.path()), None);
        let waits = watched(root.path(), std::future::pending::<()>()).await;
        let why = waits_for(&pipe);
        assert_eq!(waits, Err(why.clone()));
        assert_eq!(super::super::unfit(root.path()), Some(why));
        std::fs::remove_file(&pipe).unwrap();
        assert_eq!(super::super::unfit(root.path()), None);
    }
}
