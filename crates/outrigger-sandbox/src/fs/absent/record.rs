//! Records the names that a process must not create before it starts. If the host is killed, nothing moves aside what the process
//! created, and the next start would take it for the user's. So the next start does it from this record.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{FolderEntry, Free};

const EXTENSION: &str = "absent";
/// Whatever appears this long after the host was last seen alive belongs to the user.
const LATE: Duration = Duration::from_secs(2);

static COUNT: AtomicU64 = AtomicU64::new(0);

/// The record file of one process. It is locked while its host lives and removed with the process.
#[derive(Debug)]
pub(super) struct Record {
    file: File,
    path: PathBuf,
}

impl Record {
    /// Writes the record.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn write(folder: &Path, names: &[Free]) -> io::Result<Self> {
        let (host, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut bytes = [0; 4];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        let mark = u32::from_ne_bytes(bytes);
        let path = folder.join(format!("{host}-{number}-{mark:08x}.{EXTENSION}"));
        let mut options = fs::OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        file.lock().inspect_err(|_| drop(fs::remove_file(&path)))?;
        let both = names.iter().flat_map(|it| [&it.base, &it.path]);
        let all: Vec<&[u8]> = both.map(|it| it.as_os_str().as_bytes()).collect();
        file.write_all(&all.join(&0))?;
        Ok(Self { file, path })
    }

    /// Records that the host is alive now.
    pub(super) fn beat(&self) {
        // If this fails, the recorded time is too early, and more counts as the user's.
        let _ = self.file.set_modified(SystemTime::now());
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!("{} is not removed: {error}", self.path.display());
        }
    }
}

/// Finishes the records of this host, whose processes have all ended. Whatever exists under these names is moved aside; what
/// appears later is the user's.
pub(crate) fn end(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let own = format!("{}-", std::process::id());
    let mut aside = Vec::new();
    for entry in fs::read_dir(folder)?.flatten() {
        let path = entry.path();
        let is_own = entry.file_name().as_bytes().starts_with(own.as_bytes());
        if is_own && path.extension().is_some_and(|it| it == EXTENSION) {
            let file = outrigger_files::open(&path)?;
            move_aside(&file, &mut aside, None)?;
            fs::remove_file(&path)?;
        }
    }
    Ok(aside)
}

/// Moves aside what processes of dead hosts created and returns the names.
///
/// # Errors
/// The folder cannot be read.
pub(crate) fn sweep(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut aside = Vec::new();
    for path in fs::read_dir(folder)?.flatten().map(|it| it.path()) {
        if path.extension().is_none_or(|it| it != EXTENSION) {
            continue;
        }
        let Ok(file) = outrigger_files::open(&path) else {
            continue;
        };
        match file.try_lock() {
            Ok(()) => {}
            // Its host lives.
            Err(TryLockError::WouldBlock) => continue,
            // A file system without locks: whether the host lives is unknown.
            Err(TryLockError::Error(error)) => {
                tracing::debug!("{}: {error}", path.display());
                continue;
            }
        }
        // Another start may check it at the same time and be faster.
        let seen = file.metadata().and_then(|it| it.modified());
        let done = seen.and_then(|seen| move_aside(&file, &mut aside, Some(seen)));
        if let Err(error) = done.and_then(|()| fs::remove_file(&path)) {
            tracing::debug!("{}: {error}", path.display());
        }
    }
    Ok(aside)
}

/// Moves aside what exists of the names in a record, except what was created after its host was last seen.
fn move_aside(file: &File, aside: &mut Vec<PathBuf>, seen: Option<SystemTime>) -> io::Result<()> {
    let whose = if seen.is_some() {
        " of an Outrigger that was killed"
    } else {
        ""
    };
    let bytes = outrigger_files::read_open(file.try_clone()?, outrigger_files::DATA)?;
    let mut names = bytes
        .split(|byte| *byte == 0)
        .map(|it| PathBuf::from(std::ffi::OsString::from_vec(it.to_vec())));
    while let (Some(base), Some(name)) = (names.next(), names.next()) {
        let is_users = seen.is_some_and(|seen| is_later(&name, seen));
        let Some(place) = FolderEntry::of(&base, &name).filter(|_| !is_users) else {
            continue;
        };
        place.take_away(whose);
        aside.push(name);
    }
    Ok(())
}

/// Returns whether something was created, moved there or changed after the host had ended.
fn is_later(path: &Path, seen: SystemTime) -> bool {
    let Ok(meta) = fs::symlink_metadata(path) else {
        return false;
    };
    let changed = u64::try_from(meta.ctime()).unwrap_or_default();
    UNIX_EPOCH + Duration::from_secs(changed) > seen + LATE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::lookups::Lookups;

    #[test]
    fn what_a_killed_host_left_is_moved_aside_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        let records = at("records");
        fs::create_dir(&records).unwrap();
        let names = [at("made"), at("li\nnk"), at("never")];
        let lookups = &mut Lookups::default();
        let names: Vec<Free> = names
            .iter()
            .filter_map(|it| Free::of(it, lookups))
            .collect();
        let record = Record::write(&records, &names).unwrap();
        fs::write(at("made"), "").unwrap();
        std::os::unix::fs::symlink("/nowhere", at("li\nnk")).unwrap();
        record.beat();
        // The host lives; a host that ends in order leaves nothing.
        assert_eq!(end(&records).unwrap(), [at("made"), at("li\nnk")]);
        assert_eq!(fs::read_dir(&records).unwrap().count(), 0);
        drop(record);
        fs::write(at("made"), "").unwrap();
        std::os::unix::fs::symlink("/nowhere", at("li\nnk")).unwrap();
        let record = Record::write(&records, &names).unwrap();
        assert!(sweep(&records).unwrap().is_empty());
        record.file.unlock().unwrap();
        assert_eq!(sweep(&records).unwrap(), [at("made"), at("li\nnk")]);
        assert!(names.iter().all(|it| it.place().is_none()));
        assert_eq!(fs::read_dir(&records).unwrap().count(), 0);
    }

    #[test]
    fn what_the_user_makes_later_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (records, name) = (dir.path().join("records"), dir.path().join("late"));
        fs::create_dir(&records).unwrap();
        let free = Free::of(&name, &mut Lookups::default()).unwrap();
        let record = Record::write(&records, &[free]).unwrap();
        record
            .file
            .set_modified(SystemTime::now() - Duration::from_secs(10))
            .unwrap();
        record.file.unlock().unwrap();
        fs::write(&name, "mine").unwrap();
        assert!(sweep(&records).unwrap().is_empty());
        assert!(name.exists());
    }
}
