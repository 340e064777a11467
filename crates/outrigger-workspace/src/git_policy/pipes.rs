//! Pipes in the place of files that git reads in every folder of a project. To look for them each time would cost more than git itself:
//! they are looked for once git takes long, and remembered as long as they are there.

use std::collections::{BTreeMap, VecDeque};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use crate::sync::lock;

/// Files that git reads in every folder.
const IN_EVERY_FOLDER: [&str; 2] = [".gitattributes", ".gitignore"];
/// How long git may take before it is looked at what it may be waiting for.
const LOOKS_AFTER: Duration = Duration::from_secs(2);
/// So many names are looked at.
const MAX_NAMES: usize = 1_000_000;

/// What was found, by worktree.
static FOUND: Mutex<BTreeMap<PathBuf, PathBuf>> = Mutex::new(BTreeMap::new());

/// The pipe that was found in a worktree, while it is there.
pub(super) fn known(worktree: &Path) -> Option<PathBuf> {
    let mut all = lock(&FOUND);
    let pipe = all.get(worktree)?.clone();
    if !is_pipe(&pipe) {
        all.remove(worktree);
        return None;
    }
    Some(pipe)
}

/// Waits for git in a worktree. Where it takes long and waits for a pipe, it is ended, and the error names that.
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

/// The first pipe of such a name. Reads the disk.
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
        // One that only takes long.
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
