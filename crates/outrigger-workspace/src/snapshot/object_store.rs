//! The folder of the object store.

use std::fs::{File, TryLockError};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::SnapshotError;
use crate::git_policy::small;

/// How long to wait for another process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum bytes of a copied index: a million files have about a hundred megabytes.
const MAX_INDEX_BYTES: u64 = 512 << 20;

const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tautocrlf = false\n\
    \tsymlinks = true\n\tfsmonitor = false\n\tquotepath = false\n\tpreloadindex = true\n[gc]\n\tauto = 0\n";

/// Whatever the project's attributes specify, bytes are unmodified.
const ATTRIBUTES: &str = "* -text -eol -filter -ident -working-tree-encoding\n";

/// Creates the store if there is none, and locks it for this process.
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
    // Left by a killed git: the holder of the lock knows that no other one runs.
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

/// Creates what `git init` would, without starting it. `HEAD` comes last: it marks the store as complete.
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

/// Borrows objects and index of the project's repository, so that committed files need not be re-read.
fn borrow(store: &Path, own: &Path, common: &Path) -> std::io::Result<()> {
    let config = small(&common.join("config"));
    // Object names of another length, or a split index, cannot be used.
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

/// Returns whether it is a usable index. A command can create a sparse one that takes no space, but would fill the disk as a copy.
fn is_index(path: &Path) -> std::io::Result<bool> {
    let Ok(mut file) = outrigger_files::open(path) else {
        return Ok(false);
    };
    let meta = file.metadata()?;
    let has_holes = meta.blocks().saturating_mul(512) < meta.len();
    if meta.len() > MAX_INDEX_BYTES || has_holes {
        return Ok(false);
    }
    let mut begins = [0; 4];
    Ok(file.read_exact(&mut begins).is_ok() && begins == *b"DIRC")
}

/// Returns the repository's folder of this worktree, and the one that it shares with others.
fn repository(worktree: &Path) -> Option<(PathBuf, PathBuf)> {
    let git = worktree.join(".git");
    if git.is_dir() {
        return Some((git.clone(), git));
    }
    let own = worktree.join(small(&git).strip_prefix("gitdir:")?.trim());
    // The main worktree has no such file; the folder is its own.
    let common = own.join(small(&own.join("commondir")).trim());
    Some((own, common))
}

/// Excludes what the repository excludes by its own list.
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

/// Returns when a file was last written, and its length.
pub(super) fn stamp(path: &Path) -> Option<(SystemTime, u64)> {
    let found = path.metadata().ok()?;
    Some((found.modified().ok()?, found.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy takes the space that the original does not.
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
