//! Replaces whole files: a reader, even after a crash, finds the old file or the new one, never half of one.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::FileError;

/// Who may read a replaced file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Its owner (mode 0600). A link at its path is replaced.
    Owner,
    /// The same as before; for a new file, as the umask permits. A link at its path is followed.
    AsBefore,
}

/// Writes a new file next to `path`, syncs it and renames it to `path`. Creates missing folders.
///
/// # Errors
/// The system's error; the old file is then unchanged.
pub fn replace(path: &Path, bytes: &[u8], readers: Readers) -> io::Result<()> {
    let target = match readers {
        Readers::Owner => path.to_path_buf(),
        Readers::AsBefore => path.canonicalize().unwrap_or_else(|_| path.to_path_buf()),
    };
    put(&target, bytes, readers)
}

/// Like [`replace`], for a file in a folder that others can write, such as a project: its readers are unchanged, and a link at its
/// path is refused. One that appears there in the meantime is replaced, not followed.
///
/// # Errors
/// [`FileError::Link`] in an [`io::Error`], or the system's error. The old file is then unchanged.
pub fn replace_unlinked(path: &Path, bytes: &[u8]) -> io::Result<()> {
    refuse_link(path)?;
    put(path, bytes, Readers::AsBefore)
}

/// # Errors
/// [`FileError::Link`] in an [`io::Error`] if there is a link.
pub fn refuse_link(path: &Path) -> io::Result<()> {
    if path.is_symlink() {
        Err(FileError::Link.into())
    } else {
        Ok(())
    }
}

fn put(target: &Path, bytes: &[u8], readers: Readers) -> io::Result<()> {
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder)?;
    }
    let draft = draft(target);
    let written = write(&draft, target, bytes, readers);
    written.inspect_err(|_| {
        let _ = fs::remove_file(&draft);
    })
}

fn write(draft: &Path, target: &Path, bytes: &[u8], readers: Readers) -> io::Result<()> {
    let mode = if readers == Readers::Owner {
        0o600
    } else {
        0o666
    };
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(draft)?;
    if readers == Readers::AsBefore
        && let Ok(old) = fs::symlink_metadata(target)
        && old.is_file()
    {
        file.set_permissions(Permissions::from_mode(old.permissions().mode()))?;
    }
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(draft, target)
}

/// Returns a unique name in the same folder. `create_new` refuses one that exists.
fn draft(target: &Path) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!(".{name}.{}.{number}.new", std::process::id()))
}

/// A lock between processes (`flock`), released on drop and at the end of the process.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "the lock lives as long as the file is open")] File);

/// Waits for the lock of the file `path`, which is created if missing, with its folders.
///
/// # Errors
/// The system's error.
pub fn lock(path: &Path) -> io::Result<Lock> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    file.lock()?;
    Ok(Lock(file))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, symlink};

    use super::*;

    #[test]
    fn a_link_in_a_project_is_not_written_through() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("theirs"), "old").unwrap();
        for (name, to) in [("link", "theirs"), ("dangling", "new")] {
            symlink(to, at(name)).unwrap();
            let error = replace_unlinked(&at(name), b"x").unwrap_err();
            assert_eq!(FileError::of(&error), Some(&FileError::Link), "{name}");
        }
        assert_eq!(fs::read_to_string(at("theirs")).unwrap(), "old");
        assert!(!at("new").exists());
        replace_unlinked(&at("theirs"), b"new").unwrap();
        assert_eq!(fs::read_to_string(at("theirs")).unwrap(), "new");
    }

    #[test]
    fn a_file_is_replaced_whole_with_the_readers_it_should_have() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("open"), "old").unwrap();
        fs::set_permissions(at("open"), Permissions::from_mode(0o640)).unwrap();
        for (name, to) in [("link", "open"), ("secret-link", "open")] {
            symlink(to, at(name)).unwrap();
        }
        for (name, readers, mode, is_link) in [
            ("open", Readers::AsBefore, 0o640, false),
            ("link", Readers::AsBefore, 0o640, true),
            ("secret-link", Readers::Owner, 0o600, false),
            ("new/folder/secret", Readers::Owner, 0o600, false),
        ] {
            replace(&at(name), name.as_bytes(), readers).unwrap();
            assert_eq!(fs::read_to_string(at(name)).unwrap(), name);
            assert_eq!(
                fs::metadata(at(name)).unwrap().mode() & 0o777,
                mode,
                "{name}"
            );
            assert_eq!(at(name).is_symlink(), is_link, "{name}");
        }
        assert_eq!(fs::read_to_string(at("open")).unwrap(), "link");
        // No temporary file remains, not even after a failure.
        fs::create_dir(at("folder")).unwrap();
        replace(&at("folder"), b"", Readers::Owner).unwrap_err();
        let names = fs::read_dir(dir.path()).unwrap();
        let drafts = names.filter(|it| {
            it.as_ref()
                .unwrap()
                .file_name()
                .to_string_lossy()
                .ends_with(".new")
        });
        assert_eq!(drafts.count(), 0);
    }

    #[test]
    fn writers_at_once_leave_one_whole_file_and_no_change_is_lost_under_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("count");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        let _held = lock(&file.with_extension("lock")).unwrap();
                        let before = fs::read_to_string(&file).unwrap_or_default();
                        replace(&file, format!("{before}x").as_bytes(), Readers::Owner).unwrap();
                    }
                });
            }
        });
        assert_eq!(fs::read_to_string(&file).unwrap().len(), 100);
    }
}
