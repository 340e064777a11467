//! A folder that is found once and held open: what is put in its place later is not it.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};

/// The folder.
#[derive(Debug)]
pub struct Anchor {
    path: PathBuf,
    folder: File,
}

impl Anchor {
    /// Holds the folder of a path, which is absolute and without links.
    ///
    /// # Errors
    /// That of `openat2`; ELOOP where there is a link in the path.
    pub fn hold(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            folder: open(path)?,
        })
    }

    /// Its path, which may lead elsewhere by now.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its path still leads to it, and by no link.
    #[must_use]
    pub fn stands(&self) -> bool {
        let is_same = |there: File| -> io::Result<bool> {
            let (there, here) = (there.metadata()?, self.folder.metadata()?);
            Ok((there.dev(), there.ino()) == (here.dev(), here.ino()))
        };
        open(&self.path).and_then(is_same).unwrap_or(false)
    }

    /// A path that leads into the folder whatever is in its place, as long as this is held.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_raw_fd()))
    }

    /// What the folder holds, in no order.
    ///
    /// # Errors
    /// The system's answer.
    pub fn entries(&self) -> io::Result<fs::ReadDir> {
        fs::read_dir(self.root())
    }
}

fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(File::from(openat2(CWD, path, flags, Mode::empty(), links)?))
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
