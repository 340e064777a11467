//! The store's folder.

use std::fs::{File, TryLockError};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::SnapshotError;
use crate::git_policy::small;

/// How long another process is waited for.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes of an index that is copied: a million files have about a hundred megabytes.
const LARGEST_INDEX: u64 = 512 << 20;

const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tautocrlf = false\n\
    \tsymlinks = true\n\tfsmonitor = false\n\tquotepath = false\n\tpreloadindex = true\n[gc]\n\tauto = 0\n";

/// Whatever the project's attributes say, bytes are kept as they are.
const ATTRIBUTES: &str = "* -text -eol -filter -ident -working-tree-encoding\n";

/// Makes the store where there is none, and holds it for this process.
pub(super) async fn prepare(store: &Path, worktree: &Path) -> Result<File, SnapshotError> {
    let fail = |path: &Path, error: &std::io::Error| SnapshotError::Folder {
        path: path.display().to_string(),
        reason: error.to_string(),
    };
    let is_new = !store.join("HEAD").is_file();
    if is_new {
        std::fs::create_dir_all(store).map_err(|e| fail(store, &e))?;
    }
    let held = hold(store).await?;
    if is_new && !store.join("HEAD").is_file() {
        make(store, worktree).map_err(|e| fail(store, &e))?;
    }
    // Left by a git that was killed: the holder of the store knows that no other one runs.
    let _ = std::fs::remove_file(store.join("index.lock"));
    exclude(store, worktree).map_err(|e| fail(store, &e))?;
    Ok(held)
}

async fn hold(store: &Path) -> Result<File, SnapshotError> {
    let path = store.join("outrigger.lock");
    let fail = |reason: String| SnapshotError::Folder {
        path: path.display().to_string(),
        reason,
    };
    let file = crate::lock_file::open(&path).map_err(|e| fail(e.to_string()))?;
    let end = Instant::now() + LOCK_TIMEOUT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < end => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(TryLockError::WouldBlock) => {
                return Err(fail("another process has held it for too long".into()));
            }
            Err(TryLockError::Error(error)) => return Err(fail(error.to_string())),
        }
    }
}

/// What `git init` would make, without starting it. `HEAD` comes last: with it the store is there.
fn make(store: &Path, worktree: &Path) -> std::io::Result<()> {
    for folder in ["objects/info", "objects/pack", "refs/heads", "info"] {
        std::fs::create_dir_all(store.join(folder))?;
    }
    std::fs::write(store.join("config"), CONFIG)?;
    std::fs::write(store.join("info/attributes"), ATTRIBUTES)?;
    if let Some((own, common)) = repository(worktree) {
        borrow(store, &own, &common)?;
    }
    std::fs::write(store.join("HEAD"), "ref: refs/heads/main\n")
}

/// Objects and index of the project's repository: what is committed need not be read again.
fn borrow(store: &Path, own: &Path, common: &Path) -> std::io::Result<()> {
    let config = small(&common.join("config"));
    // Names of another length, or an index in two files, are of no use here.
    if config.contains("objectformat") || config.contains("objectFormat") {
        return Ok(());
    }
    let objects = common.join("objects");
    let more = small(&objects.join("info/alternates"));
    let mut lines = format!("{}\n", objects.display());
    for line in more.lines().filter(|line| line.starts_with('/')) {
        lines.push_str(line);
        lines.push('\n');
    }
    std::fs::write(store.join("objects/info/alternates"), lines)?;
    let split = std::fs::read_dir(own)?.flatten().any(|entry| {
        entry
            .file_name()
            .to_string_lossy()
            .starts_with("sharedindex.")
    });
    if !split && is_index(&own.join("index"))? {
        std::fs::copy(own.join("index"), store.join("index"))?;
    }
    Ok(())
}

/// Whether that is an index worth a copy. A command can make one with holes that takes no room where it is, and all that there is as a
/// copy.
fn is_index(path: &Path) -> std::io::Result<bool> {
    let Ok(mut file) = outrigger_files::open(path) else {
        return Ok(false);
    };
    let meta = file.metadata()?;
    let has_holes = meta.blocks().saturating_mul(512) < meta.len();
    if meta.len() > LARGEST_INDEX || has_holes {
        return Ok(false);
    }
    let mut begins = [0; 4];
    Ok(file.read_exact(&mut begins).is_ok() && begins == *b"DIRC")
}

/// The repository's folder of this worktree, and the one that it shares with others.
fn repository(worktree: &Path) -> Option<(PathBuf, PathBuf)> {
    let git = worktree.join(".git");
    if git.is_dir() {
        return Some((git.clone(), git));
    }
    let own = worktree.join(small(&git).strip_prefix("gitdir:")?.trim());
    // Of the main worktree there is no such file, and the folder is its own.
    let common = own.join(small(&own.join("commondir")).trim());
    Some((own, common))
}

/// What the repository leaves out by its own list is left out here.
fn exclude(store: &Path, worktree: &Path) -> std::io::Result<()> {
    let theirs = repository(worktree)
        .and_then(|(_, common)| {
            outrigger_files::read(&common.join("info/exclude"), outrigger_files::SETTINGS).ok()
        })
        .unwrap_or_default();
    let ours = store.join("info/exclude");
    if outrigger_files::read(&ours, outrigger_files::SETTINGS)
        .ok()
        .as_deref()
        != Some(theirs.as_slice())
    {
        std::fs::write(ours, theirs)?;
    }
    Ok(())
}

/// When a file was written last, and how long it is.
pub(super) fn stamp(path: &Path) -> Option<(SystemTime, u64)> {
    let found = path.metadata().ok()?;
    Some((found.modified().ok()?, found.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy takes the room that the original does not.
    #[test]
    fn an_index_with_holes_is_not_copied() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at(".git")).unwrap();
        let real = [&b"DIRC"[..], &[0; 8000]].concat();
        for (text, length, is_copied) in [
            (&real[..], None, true),
            (b"none of git's", None, false),
            (b"", Some(1 << 31), false),
            (b"DIRC", Some(1 << 30), false),
            (b"DIRC", Some(1 << 22), false),
        ] {
            std::fs::write(at(".git/index"), text).unwrap();
            if let Some(length) = length {
                let file = File::options().write(true).open(at(".git/index")).unwrap();
                file.set_len(length).unwrap();
            }
            let store = at("store");
            let _ = std::fs::remove_dir_all(&store);
            std::fs::create_dir_all(&store).unwrap();
            make(&store, dir.path()).unwrap();
            assert_eq!(store.join("index").exists(), is_copied, "{length:?}");
        }
    }
}
