//! A folder that is opened once and held, so that a replacement at its path has no effect.
//!
//! Whatever is read, written or removed through it is really in it. Otherwise a process could swap a folder on the way for a
//! link between the decision about a path and its opening, and another file would be opened.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, mkdirat, openat2, renameat, unlinkat};

/// An open folder.
#[derive(Debug)]
pub struct Anchor {
    path: PathBuf,
    folder: File,
}

impl Anchor {
    /// Opens the folder at `path`, which is absolute and without links.
    ///
    /// # Errors
    /// The error of `openat2`; `ELOOP` if the path contains a link.
    pub fn hold(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            folder: open(path)?,
        })
    }

    /// Like [`Self::hold`], but the last part of the path may be a link, such as `/proc/self/fd/N` of a folder that is already
    /// open.
    ///
    /// # Errors
    /// The system's error.
    pub fn again(path: &Path) -> io::Result<Self> {
        let flags = FOLDER | OFlags::NOCTTY;
        let folder = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self {
            path: path.to_owned(),
            folder: File::from(folder),
        })
    }

    /// Like [`Self::hold`], but creates missing folders.
    ///
    /// # Errors
    /// Those of [`Self::hold`] and of creating a folder.
    pub fn make(path: &Path) -> io::Result<Self> {
        let missing = match Self::hold(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => error,
            held => return held,
        };
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(missing);
        };
        let parent = Self::make(parent)?;
        match mkdirat(&parent.folder, name, Mode::from_raw_mode(0o777)) {
            // Another process has created it.
            Err(rustix::io::Errno::EXIST) | Ok(()) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(Self {
            path: path.to_owned(),
            folder: below(&parent.folder, Path::new(name), FOLDER, Mode::empty())?,
        })
    }

    /// Returns its path, which may refer to something else by now.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether its path still refers to it without a link.
    #[must_use]
    pub fn stands(&self) -> bool {
        let is_same = |there: File| -> io::Result<bool> {
            let (there, here) = (there.metadata()?, self.folder.metadata()?);
            Ok((there.dev(), there.ino()) == (here.dev(), here.ino()))
        };
        open(&self.path).and_then(is_same).unwrap_or(false)
    }

    /// Returns a path that refers to the folder regardless of what is at its original path, as long as this is held.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_raw_fd()))
    }

    /// Lists the folder's entries, in no particular order.
    ///
    /// # Errors
    /// The system's error.
    pub fn entries(&self) -> io::Result<fs::ReadDir> {
        fs::read_dir(self.root())
    }

    /// Opens something in it, or below it, for reading. Does not wait for the writer of a pipe.
    ///
    /// # Errors
    /// The error of `openat2`; `ELOOP` if there is a link on the way.
    pub fn open(&self, path: &Path) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
        below(&self.folder, path, flags, Mode::empty())
    }

    /// Returns whether this name exists in it, or below it, without a link on the way.
    #[must_use]
    pub fn has(&self, path: &Path) -> bool {
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        path.as_os_str().is_empty() || below(&self.folder, path, flags, Mode::empty()).is_ok()
    }

    /// Creates a file in it for writing, with mode 0666 less the umask.
    ///
    /// # Errors
    /// `AlreadyExists`, or the system's error.
    pub fn create(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        below(&self.folder, Path::new(name), flags, mode)
    }

    /// Renames an entry, replacing whatever has the new name.
    ///
    /// # Errors
    /// The system's error.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.folder, from, &self.folder, to)?)
    }

    /// Removes a file or link from it.
    ///
    /// # Errors
    /// The system's error.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.folder, name, AtFlags::empty())?)
    }
}

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

fn open(path: &Path) -> io::Result<File> {
    let links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(File::from(openat2(
        CWD,
        path,
        FOLDER,
        Mode::empty(),
        links,
    )?))
}

fn below(folder: impl AsFd, path: &Path, flags: OFlags, mode: Mode) -> io::Result<File> {
    let links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::BENEATH;
    Ok(File::from(openat2(folder, path, flags, mode, links)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_its_place_is_not_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in ["own/mine", "other/theirs"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let anchor = Anchor::hold(&root.join("own")).unwrap();
        assert!(anchor.stands());
        fs::rename(root.join("own"), root.join("gone")).unwrap();
        assert!(!anchor.stands());
        for replace in ["link", "folder"] {
            match replace {
                "link" => std::os::unix::fs::symlink("other", root.join("own")).unwrap(),
                _ => fs::create_dir(root.join("own")).unwrap(),
            }
            assert!(!anchor.stands(), "{replace}");
            let mut names = anchor.entries().unwrap().map(|it| it.unwrap().file_name());
            assert_eq!(names.next().unwrap(), "mine");
            if replace == "link" {
                assert!(Anchor::hold(&root.join("own")).is_err());
                fs::remove_file(root.join("own")).unwrap();
            }
        }
        fs::remove_dir(root.join("own")).unwrap();
        fs::rename(root.join("gone"), root.join("own")).unwrap();
        assert!(anchor.stands());
    }
}
