//! Removal of folders that sandboxed processes can write.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::fs::{chmod, openat, rmdir, unlinkat};
use rustix::io::Errno;

/// Maximum number of folders in a tree. A process that still adds some does not keep its remover busy for ever.
const MAX_FOLDERS: usize = 1_000_000;

/// Removes a folder with all that is in it, however deep, or a link. Links are removed, not followed.
///
/// The standard library's function recurs and holds a descriptor for each level, so a process can nest folders so deep
/// that it overflows the stack or runs out of descriptors. Here one folder is open at a time, and the way back is `..`,
/// which is checked: a folder that was moved meanwhile leads nowhere else.
///
/// # Errors
/// The system's error; `NotFound` if it does not exist, `NotADirectory` for a file.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    if path.is_symlink() {
        return std::fs::remove_file(path);
    }
    let mut at = open_folder(CWD, path)?;
    let mut levels = vec![Level::of(&at, CString::default())?];
    let mut entered = 0;
    while let Some(level) = levels.last_mut() {
        if let Some(name) = level.inner.pop() {
            entered += 1;
            if entered > MAX_FOLDERS {
                return Err(io::Error::other(format!(
                    "there are more than {MAX_FOLDERS} folders in it; end what writes there and remove it"
                )));
            }
            match open_folder(at.as_fd(), &name) {
                Ok(folder) => {
                    levels.push(Level::of(&folder, name)?);
                    at = folder;
                }
                // Replaced meanwhile.
                Err(Errno::NOTDIR | Errno::LOOP) => unlinkat(&at, &name, AtFlags::empty())?,
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
            continue;
        }
        let name = std::mem::take(&mut level.name);
        levels.pop();
        let Some(above) = levels.last_mut() else {
            break;
        };
        at = open_folder(at.as_fd(), c"..")?;
        if above.id != id(&at)? {
            return Err(io::Error::other("a folder in it was moved meanwhile"));
        }
        match unlinkat(&at, &name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            // Something was added since it was read.
            Err(Errno::NOTEMPTY | Errno::EXIST) => above.inner.push(name),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(rmdir(path)?)
}

/// A folder on the way from the root to the one that is emptied.
struct Level {
    id: (u64, u64),
    /// Its name in the folder above.
    name: CString,
    /// The folders in it that are still to be removed.
    inner: Vec<CString>,
}

impl Level {
    /// Removes what is no folder.
    fn of(folder: &OwnedFd, name: CString) -> io::Result<Self> {
        Ok(Self {
            id: id(folder)?,
            name,
            inner: empty(folder)?,
        })
    }
}

fn id(folder: &OwnedFd) -> io::Result<(u64, u64)> {
    let stat = rustix::fs::fstat(folder)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// Removes everything from a folder but folders, and returns the names of those.
fn empty(folder: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut inner = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if entry.file_type() == FileType::Directory {
            inner.push(name.to_owned());
            continue;
        }
        match unlinkat(folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            // Some file systems do not name the kind.
            Err(Errno::ISDIR) => inner.push(name.to_owned()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(inner)
}

fn open_folder<P: rustix::path::Arg + Copy>(at: BorrowedFd<'_>, name: P) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || openat(at, name, flags, Mode::empty());
    let folder = match open() {
        Err(Errno::ACCESS) => {
            opened_up(at, name)?;
            open()
        }
        other => other,
    }?;
    // Entries can be removed from it only with all rights.
    let rights = Mode::from_raw_mode(rustix::fs::fstat(&folder)?.st_mode);
    if !rights.contains(Mode::RWXU) {
        let _ = rustix::fs::fchmod(&folder, Mode::RWXU);
    }
    Ok(folder)
}

/// Gives the owner all rights on a folder; a link is not followed.
fn opened_up<P: rustix::path::Arg>(at: BorrowedFd<'_>, name: P) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = openat(at, name, flags, Mode::empty())?;
    chmod(format!("/proc/self/fd/{}", held.as_raw_fd()), Mode::RWXU)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    /// Makes a chain of folders that no path can name as a whole.
    fn chain(root: &Path, depth: usize) {
        let mut at = open_folder(CWD, root).unwrap();
        for _ in 0..depth {
            rustix::fs::mkdirat(&at, "d", Mode::RWXU).unwrap();
            at = open_folder(at.as_fd(), c"d").unwrap();
        }
        let file = OFlags::CREATE | OFlags::WRONLY;
        drop(openat(&at, "file", file, Mode::RUSR).unwrap());
    }

    #[test]
    fn a_deep_chain_of_folders_is_removed_on_a_small_stack() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir(&root).unwrap();
        chain(&root, 1500);
        let small = std::thread::Builder::new().stack_size(64 << 10);
        let at = root.clone();
        let removed = small.spawn(move || remove_tree(&at)).unwrap().join();
        removed.unwrap().unwrap();
        assert!(!root.exists());
    }

    #[test]
    fn everything_in_it_is_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        fs::create_dir_all(root.join("b/a")).unwrap();
        fs::create_dir(&outside).unwrap();
        for file in ["root/x", "root/a/z", "root/a/b/y", "outside/kept"] {
            fs::write(dir.path().join(file), "x").unwrap();
        }
        symlink(&outside, root.join("a/link")).unwrap();
        symlink(&outside, root.join("link")).unwrap();
        for closed in ["a/b/c", "a/b", "a"] {
            fs::set_permissions(root.join(closed), fs::Permissions::from_mode(0o000)).unwrap();
        }
        remove_tree(&root).unwrap();
        assert!(!root.exists() && outside.join("kept").exists());
    }

    #[test]
    fn a_folder_or_a_link_itself_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "x").unwrap();
        symlink(dir.path(), &link).unwrap();
        let error = remove_tree(&file).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory, "{error}");
        remove_tree(&link).unwrap();
        assert!(file.exists() && !link.is_symlink());
        let none = remove_tree(&dir.path().join("none")).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
    }
}
