//! Paths to mask and how: exactly the file or folder that was found before the start, not what has replaced it.

use std::ffi::{CString, OsStr};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::mount::{MOVE_MOUNT_EMPTY_PATHS, OPEN_TREE_CLONE, read_only};
use crate::fs::real_paths::RealPaths;
use crate::namespaces::syscall::{called, check};

/// Where the empty file and folder are while the mounts are made. It exists everywhere, and nothing below it is looked up
/// in the meantime.
pub(super) const STAGE: &std::ffi::CStr = c"/proc";
pub(super) const EMPTY_FILE: &std::ffi::CStr = c"/proc/file";
pub(super) const EMPTY_FOLDER: &std::ffi::CStr = c"/proc/folder";

/// The error of a start before which a path to mask was moved: the caller must search again.
pub(crate) const MOVED: libc::c_int = libc::ESTALE;

/// `STATX_ATTR_MOUNT_ROOT`.
const MOUNT_ROOT: u64 = 0x2000;

/// What a missing path means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Gone {
    Skipped,
    Moved,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cover {
    File,
    Folder,
    ReadOnly,
    Held,
    /// A link, which keeps its name. Its target is handled separately.
    Link,
}

/// A path to mask and the identity of what was found there.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) path: CString,
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) cover: Cover,
}

impl Target {
    pub(super) fn of(path: &Path, meta: &fs::Metadata, cover: Cover) -> io::Result<Self> {
        Ok(Self {
            path: c_string(path.as_os_str())?,
            device: meta.dev(),
            inode: meta.ino(),
            cover,
        })
    }

    /// Opens whatever is at the path now.
    #[expect(unsafe_code, reason = "see `View::apply`")]
    pub(super) unsafe fn open_whatever(&self) -> io::Result<libc::c_int> {
        let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: a prepared string.
        let target = unsafe { libc::open(self.path.as_ptr(), flags) };
        check(target).map_err(moved)?;
        Ok(target)
    }

    /// Opens what was found, and fails if something else has replaced it.
    #[expect(unsafe_code, reason = "see `View::apply`")]
    pub(super) unsafe fn open(&self) -> io::Result<libc::c_int> {
        // SAFETY: a raw call on a local of the size that is passed.
        unsafe {
            let target = self.open_whatever()?;
            let mut stat: libc::stat = std::mem::zeroed();
            check(libc::fstat(target, &raw mut stat))?;
            if stat.st_dev != self.device || stat.st_ino != self.inode {
                return Err(io::Error::from_raw_os_error(MOVED));
            }
            Ok(target)
        }
    }

    /// Masks exactly what was found: it is held by a descriptor, so it may be moved in the meantime. Runs in the child.
    #[expect(unsafe_code, reason = "see `View::apply`")]
    pub(super) unsafe fn apply(&self) -> io::Result<()> {
        // SAFETY: what is opened is closed by what covers it.
        let covered = unsafe { self.open().and_then(|it| self.apply_to(it)) };
        match self.cover {
            // Not every kernel can mount over a link, and another command may have replaced it.
            Cover::Link => Ok(()),
            _ => covered,
        }
    }

    /// Mounts it once more if it is not held by a mount: what closed folders show are copies, and one made while another process had moved
    /// this elsewhere has no mount here.
    #[expect(unsafe_code, reason = "see `View::apply`")]
    pub(super) unsafe fn still_holds(&self) -> io::Result<()> {
        if self.cover == Cover::Link {
            return Ok(());
        }
        // SAFETY: a raw call on a local of the right type; what is opened is closed, here or by what covers it.
        unsafe {
            let target = self.open()?;
            let mut found: libc::statx = std::mem::zeroed();
            let answer = libc::statx(target, c"".as_ptr(), libc::AT_EMPTY_PATH, 0, &raw mut found);
            if answer == 0 && found.stx_attributes & MOUNT_ROOT != 0 {
                libc::close(target);
                return Ok(());
            }
            self.apply_to(target)
        }
    }

    /// Masks an open file or folder, and closes it.
    #[expect(unsafe_code, reason = "see `View::apply`")]
    pub(super) unsafe fn apply_to(&self, target: libc::c_int) -> io::Result<()> {
        // SAFETY: raw calls on descriptors that are open.
        unsafe {
            let (from, source, below) = match self.cover {
                Cover::File => (libc::AT_FDCWD, EMPTY_FILE, 0),
                Cover::Folder => (libc::AT_FDCWD, EMPTY_FOLDER, 0),
                Cover::ReadOnly | Cover::Held => {
                    (target, c"", libc::AT_EMPTY_PATH | libc::AT_RECURSIVE)
                }
                Cover::Link => (target, c"", libc::AT_EMPTY_PATH),
            };
            let tree = libc::syscall(
                libc::SYS_open_tree,
                from,
                source.as_ptr(),
                OPEN_TREE_CLONE | libc::O_CLOEXEC | below,
            );
            let tree = called(tree)?;
            if !matches!(self.cover, Cover::Held | Cover::Link) {
                read_only(tree, libc::AT_RECURSIVE)?;
            }
            called(libc::syscall(
                libc::SYS_move_mount,
                tree,
                c"".as_ptr(),
                target,
                c"".as_ptr(),
                MOVE_MOUNT_EMPTY_PATHS,
            ))?;
            libc::close(tree);
            libc::close(target);
            Ok(())
        }
    }
}

pub(super) fn collect(
    paths: &[PathBuf],
    cover: impl Fn(&fs::Metadata) -> Cover,
    gone: Gone,
    real: &mut RealPaths,
) -> io::Result<Vec<(PathBuf, Target)>> {
    let mut found = look(paths, cover, gone, real)?;
    found.retain(|(path, _)| !path.starts_with(OsStr::from_bytes(STAGE.to_bytes())));
    Ok(found)
}

/// Returns the links among these paths, by their own names.
pub(super) fn links(paths: &[PathBuf], real: &mut RealPaths) -> io::Result<Vec<(PathBuf, Target)>> {
    let mut found = Vec::new();
    for path in paths {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            continue;
        };
        let Ok(own) = real.of(above).map(|above| above.join(name)) else {
            continue;
        };
        // What leads to itself is no link.
        if real.of(path).is_ok_and(|it| it == own) {
            continue;
        }
        let meta = fs::symlink_metadata(&own);
        let Some(meta) = meta.ok().filter(fs::Metadata::is_symlink) else {
            continue;
        };
        let target = Target::of(&own, &meta, Cover::Link)?;
        found.push((own, target));
    }
    Ok(found)
}

pub(super) fn look(
    paths: &[PathBuf],
    cover: impl Fn(&fs::Metadata) -> Cover,
    gone: Gone,
    real: &mut RealPaths,
) -> io::Result<Vec<(PathBuf, Target)>> {
    let mut found = Vec::with_capacity(paths.len());
    for path in paths {
        // A mount covers the target of a path; the link's own name stays and points to the mask.
        let (real, meta) = match real.with_meta(path) {
            Ok(looked) => looked,
            // A dangling link shows nothing.
            Err(error) => {
                let error = moved(error);
                let is_link = || fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
                if error.raw_os_error() == Some(MOVED) && (gone == Gone::Skipped || is_link()) {
                    continue;
                }
                return Err(error);
            }
        };
        let target = Target::of(&real, &meta, cover(&meta))?;
        found.push((real, target));
    }
    Ok(found)
}

/// A path that is missing, or is a link now, has been moved.
fn moved(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP) => io::Error::from_raw_os_error(MOVED),
        _ => error,
    }
}

pub(super) fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}
