//! Our folders that a sandboxed process may write to and that the host enters again. What the process has put in their place,
//! above all a link to somewhere else, is not followed.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, mkdirat, openat, unlinkat};

/// How often a folder is looked up while others replace it.
const MAX_TRIES: u32 = 8;
/// Flags to open a folder by its own name; a link is refused.
const FOLDER: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::RDONLY);

/// Creates `root` with the folders `below` it, accessible to this user only if they are new. `root` and everything above it belong
/// to the host. Below `root`, anything that is not a folder is removed, including links.
///
/// # Errors
/// The system's error, and `InvalidInput` for a name that points elsewhere (`..`).
pub fn make(root: &Path, below: &Path) -> io::Result<()> {
    open(root, below).map(drop)
}

/// Like [`make`], and creates an empty file in the last folder if it is missing. Anything else with that name is removed.
///
/// # Errors
/// As for [`make`].
pub fn make_file(root: &Path, below: &Path) -> io::Result<()> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let name = below.file_name().ok_or_else(invalid)?;
    let folder = open(root, below.parent().unwrap_or(Path::new("")))?;
    let flags =
        OFlags::CREATE | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mode = Mode::from_raw_mode(0o600);
    let is_file = |file: &OwnedFd| {
        rustix::fs::fstat(file)
            .map(|stat| stat.st_mode)
            .is_ok_and(|mode| rustix::fs::FileType::from_raw_mode(mode).is_file())
    };
    match openat(&folder, name, flags, mode) {
        Ok(file) if is_file(&file) => Ok(()),
        _ => {
            remove(&folder, name)?;
            openat(&folder, name, flags | OFlags::EXCL, mode)?;
            Ok(())
        }
    }
}

/// Writes a file in the last of the folders `below`, after removing whatever has its name. Follows no link, not even one that
/// replaces a folder in the meantime: each folder is opened from the one above it.
///
/// # Errors
/// As for [`make`], and the system's error for the file.
pub fn write_file(root: &Path, below: &Path, bytes: &[u8]) -> io::Result<()> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let name = below.file_name().ok_or_else(invalid)?;
    let folder = open(root, below.parent().unwrap_or(Path::new("")))?;
    remove(&folder, name)?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(&folder, name, flags, Mode::from_raw_mode(0o600))?;
    File::from(file).write_all(bytes)
}

/// Removes a file, or anything else with its name that is not a folder, from the last of the folders `below`. Follows no link.
///
/// # Errors
/// As for [`make`].
pub fn remove_file(root: &Path, below: &Path) -> io::Result<()> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let name = below.file_name().ok_or_else(invalid)?;
    remove(&open(root, below.parent().unwrap_or(Path::new("")))?, name)
}

/// Returns whether this process runs as root.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the folders above these places that a process of this user could move away to put another folder there; checks each folder
/// once.
#[must_use]
pub fn movable_above_all<'a>(places: impl IntoIterator<Item = &'a Path>) -> BTreeSet<PathBuf> {
    let mut seen = BTreeSet::new();
    for place in places {
        let above = place.ancestors().skip(1);
        // Everything above a folder that was seen has been seen, too.
        for folder in above
            .take_while(|folder| !seen.contains(*folder))
            .collect::<Vec<_>>()
        {
            seen.insert(folder);
        }
    }
    let is_movable = |folder: &&Path| {
        let above = folder.parent();
        folder.exists()
            && above.is_some_and(|above| rustix::fs::access(above, Access::WRITE_OK).is_ok())
    };
    seen.into_iter()
        .filter(is_movable)
        .map(Path::to_path_buf)
        .collect()
}

fn open(root: &Path, below: &Path) -> io::Result<OwnedFd> {
    std::fs::create_dir_all(root)?;
    let mut folder = openat(CWD, root, FOLDER, Mode::empty())?;
    for step in below.components() {
        let name = match step {
            Component::Normal(name) => name,
            Component::CurDir => continue,
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        folder = enter(&folder, name)?;
    }
    Ok(folder)
}

/// Enters a folder, creating it if it is missing. Another process may create it at the same time: processes start in parallel.
fn enter(folder: &OwnedFd, name: &std::ffi::OsStr) -> io::Result<OwnedFd> {
    let mut tries = 0;
    loop {
        let error = match openat(folder, name, FOLDER, Mode::empty()) {
            Ok(inner) => return Ok(inner),
            Err(error) => error,
        };
        tries += 1;
        if tries > MAX_TRIES {
            return Err(error.into());
        }
        // A folder stays, whether it was just created by another process or cannot be opened.
        if error != rustix::io::Errno::NOENT {
            let _ = remove(folder, name);
        }
        match mkdirat(folder, name, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Removes what is not a folder that can be entered. A folder that cannot be opened stays and is an error.
fn remove(folder: &OwnedFd, name: &std::ffi::OsStr) -> io::Result<()> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_and_files_in_the_place_of_folders_are_taken_away() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("a/root"), dir.path().join("outside"));
        fs::create_dir(&outside).unwrap();
        make(&root, Path::new("home/.config")).unwrap();
        fs::write(root.join("home/.config/kept"), "").unwrap();
        make(&root, Path::new("home/.config")).unwrap();
        assert!(root.join("home/.config/kept").is_file());

        symlink(&outside, root.join("tmp")).unwrap();
        symlink("nowhere", root.join("broken")).unwrap();
        fs::write(root.join("file"), "").unwrap();
        for name in ["tmp", "tmp/deep", "broken/deep", "file"] {
            make(&root, Path::new(name)).unwrap();
            assert!(
                root.join(name).symlink_metadata().unwrap().is_dir(),
                "{name}"
            );
        }
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
        assert!(make(&root, Path::new("../b")).is_err());

        // The root itself is not a link.
        symlink(&outside, dir.path().join("link")).unwrap();
        assert!(make(&dir.path().join("link"), Path::new("x")).is_err());
    }

    #[test]
    fn the_same_folder_is_made_by_many_at_once() {
        for round in 0..50 {
            let root = tempfile::tempdir().unwrap();
            let root = root.path();
            if round % 2 == 0 {
                symlink("/nowhere", root.join("a")).unwrap();
            }
            let start = std::sync::Barrier::new(8);
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        start.wait();
                        make(root, Path::new("a/b/c")).unwrap();
                    });
                }
            });
            assert!(root.join("a/b/c").is_dir());
        }
    }

    /// A process that may write to the folder keeps swapping it for a link.
    #[test]
    fn what_is_written_stays_in_the_folder_whoever_exchanges_it() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
        fs::create_dir(&outside).unwrap();
        make(&root, Path::new("home/config")).unwrap();
        symlink(&outside, root.join("home/link")).unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                use rustix::fs::{RenameFlags, renameat_with};
                let (folder, link) = (root.join("home/config"), root.join("home/link"));
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE);
                }
            });
            for _ in 0..2000 {
                let _ = write_file(&root, Path::new("home/config/opencode.json"), b"{}");
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    }

    #[test]
    fn a_file_is_made_where_it_belongs() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        let file = Path::new("data/x.db");
        make_file(&root, file).unwrap();
        fs::write(root.join(file), "kept").unwrap();
        make_file(&root, file).unwrap();
        assert_eq!(fs::read_to_string(root.join(file)).unwrap(), "kept");

        let outside = dir.path().join("outside");
        fs::remove_file(root.join(file)).unwrap();
        symlink(&outside, root.join(file)).unwrap();
        make_file(&root, file).unwrap();
        assert!(!outside.exists());
        assert!(root.join(file).symlink_metadata().unwrap().is_file());
    }
}
