//! An entry below a folder that is to be moved away or replaced. A running process may plant links to the user's own folders on the
//! way, and this program would follow them with its own rights. So each folder on the way is opened in turn, and none of them may
//! be a link.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, chmodat, mkdirat, openat, openat2,
    renameat, statat, symlinkat, unlinkat,
};

use rustix::io::Errno;

use super::SUFFIX;

/// How often moving a file is tried before it is removed: a process may interfere.
const TRIES: u32 = 8;
const FOLDER: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A name in an open folder.
#[derive(Debug)]
pub struct FolderEntry {
    folder: OwnedFd,
    name: OsString,
    /// The path shown in messages.
    path: PathBuf,
}

impl FolderEntry {
    /// Opens the entry at `path`, which lies below `base`; `base` has no links. Returns `None` if nothing is there. If a
    /// folder on the way is a link, returns that link.
    #[must_use]
    pub fn of(base: &Path, path: &Path) -> Option<Self> {
        let mut folder =
            openat2(CWD, base, FOLDER, Mode::empty(), ResolveFlags::NO_SYMLINKS).ok()?;
        let mut shown = base.to_path_buf();
        let mut names = path.strip_prefix(base).ok()?.components().peekable();
        while let Some(name) = names.next() {
            let Component::Normal(name) = name else {
                return None;
            };
            shown.push(name);
            let stat = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            let is_last = names.peek().is_none();
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory if !is_last => {
                    folder = openat(&folder, name, FOLDER, Mode::empty()).ok()?;
                }
                FileType::Symlink if !is_last && !super::is_there(path) => return None,
                kind if is_last || kind == FileType::Symlink => {
                    return Some(Self {
                        folder,
                        name: name.to_owned(),
                        path: shown,
                    });
                }
                _ => return None,
            }
        }
        None
    }

    /// Opens a free name at `path` below `base`, which has no links. Creates missing folders on the way.
    ///
    /// # Errors
    /// The system's error, or one if a link is on the way or something exists at the path.
    pub fn free(base: &Path, path: &Path) -> io::Result<Self> {
        let mut folder = openat2(CWD, base, FOLDER, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
        let below = path
            .strip_prefix(base)
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let name = below.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        for above in below.parent().into_iter().flat_map(Path::components) {
            let Component::Normal(above) = above else {
                return Err(io::ErrorKind::InvalidInput.into());
            };
            match mkdirat(&folder, above, Mode::RWXU | Mode::RGRP | Mode::XGRP) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            folder = openat(&folder, above, FOLDER, Mode::empty())?;
        }
        match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(Self {
                folder,
                name: name.to_owned(),
                path: path.to_path_buf(),
            }),
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Moves it away, or removes it if that fails, and logs it; `whose` names what created it.
    pub(super) fn take_away(&self, whose: &str) {
        let path = self.path.display();
        match self.move_aside() {
            Some(to) => tracing::warn!(
                "[sandbox] a sandboxed process{whose} created {path}, which is not allowed; it was renamed to {}",
                to.display()
            ),
            None if self.remove() => tracing::warn!(
                "[sandbox] a sandboxed process{whose} created {path}, which is not allowed; it was removed"
            ),
            None => tracing::error!(
                "[sandbox] a sandboxed process{whose} created {path}, which is not allowed, and it cannot be renamed: remove it"
            ),
        }
    }

    /// Renames it to an unused name with [`SUFFIX`] and returns that name, or `None` if it stays.
    #[must_use]
    pub fn move_aside(&self) -> Option<PathBuf> {
        for _ in 0..TRIES {
            let mut bytes = [0; 8];
            getrandom::fill(&mut bytes).ok()?;
            let mut other = self.name.clone();
            other.push(format!("{SUFFIX}-{:016x}", u64::from_ne_bytes(bytes)));
            if statat(&self.folder, &other, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                continue;
            }
            match renameat(&self.folder, &self.name, &self.folder, &other) {
                Ok(()) => return Some(self.path.with_file_name(other)),
                // The process may have made the folder read-only for us.
                Err(Errno::ACCESS | Errno::PERM) => {
                    // If this fails, the next try will too.
                    let _ = chmodat(&self.folder, ".", Mode::RWXU, AtFlags::empty());
                }
                Err(_) => {}
            }
        }
        None
    }

    /// Writes a file where nothing exists any longer, with these permissions.
    ///
    /// # Errors
    /// The system's error.
    pub fn write_new(&self, bytes: impl AsRef<[u8]>, mode: u32) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode & 0o777);
        let file = openat(&self.folder, &self.name, flags, mode)?;
        File::from(file).write_all(bytes.as_ref())
    }

    /// Creates a link where nothing exists any longer.
    ///
    /// # Errors
    /// The system's error.
    pub fn link_to(&self, target: &Path) -> io::Result<()> {
        Ok(symlinkat(target, &self.folder, &self.name)?)
    }

    /// Removes it unless it is a folder that is not empty.
    fn remove(&self) -> bool {
        let name: &OsStr = &self.name;
        unlinkat(&self.folder, name, AtFlags::empty()).is_ok()
            || unlinkat(&self.folder, name, AtFlags::REMOVEDIR).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    /// The user's file stays although a process planted a link to its folder; only the link is removed.
    #[test]
    fn what_links_lead_to_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (project, users) = (root.join("project"), root.join("users"));
        fs::create_dir_all(&project).unwrap();
        fs::create_dir_all(&users).unwrap();
        fs::write(users.join("tasks.json"), "mine").unwrap();
        symlink(&users, project.join(".vscode")).unwrap();
        let place = FolderEntry::of(&project, &project.join(".vscode/tasks.json")).unwrap();
        assert!(place.move_aside().is_some());
        assert!(!project.join(".vscode").exists());
        assert_eq!(
            fs::read_to_string(users.join("tasks.json")).unwrap(),
            "mine"
        );
        // A link whose target has no such name has no effect.
        symlink(&users, project.join(".vscode")).unwrap();
        assert!(FolderEntry::of(&project, &project.join(".vscode/launch.json")).is_none());
        fs::remove_file(project.join(".vscode")).unwrap();
        symlink(&users, root.join("door")).unwrap();
        assert!(FolderEntry::of(&root.join("door"), &root.join("door/tasks.json")).is_none());
    }

    #[test]
    fn a_folder_that_nobody_writes_to_keeps_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let made = root.join("shut/config");
        fs::create_dir(root.join("shut")).unwrap();
        fs::write(&made, "old").unwrap();
        fs::set_permissions(root.join("shut"), fs::Permissions::from_mode(0o555)).unwrap();
        let place = FolderEntry::of(&root, &made).unwrap();
        let aside = place.move_aside().unwrap();
        place.write_new("new", 0o600).unwrap();
        assert!(place.write_new("again", 0o600).is_err());
        assert_eq!(fs::read_to_string(aside).unwrap(), "old");
        assert_eq!(fs::read_to_string(made).unwrap(), "new");
    }
}
