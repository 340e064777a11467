//! Folders that show a process only certain subfolders, whatever else appears in them while it runs. A mask of a single
//! file no longer covers it after the host replaces the file.

use std::collections::HashMap;
use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::mount::{
    MOVE_MOUNT_EMPTY_PATHS, MOVE_MOUNT_FROM_EMPTY_PATH, OPEN_TREE_CLONE, read_only,
};
use super::target::{Cover, Gone, Target, collect};
use crate::fs::real_paths::RealPaths;
use crate::namespaces::syscall::{called, check};

/// A closed folder and the subfolders it shows.
#[derive(Debug, Clone)]
pub(super) struct Closed {
    /// Where its replacement is built.
    stage: CString,
    folder: Target,
    inside: Vec<Inside>,
}

#[derive(Debug, Clone)]
struct Inside {
    name: OsString,
    stage: CString,
    target: Target,
}

/// Returns all closed folders, each with the folders shown right below it under their own names, which may be links.
pub(super) fn all(
    folders: Vec<(PathBuf, Target)>,
    shown: &[PathBuf],
    real: &mut RealPaths,
) -> io::Result<Vec<(PathBuf, Closed)>> {
    let stage = |name: &[u8]| {
        let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
        CString::new(name).map_err(invalid)
    };
    let mut above: HashMap<&Path, Option<(u64, u64)>> = HashMap::new();
    let mut shown_in = Vec::with_capacity(shown.len());
    for path in shown {
        let Some(folder) = path.parent() else {
            continue;
        };
        let identity = above.entry(folder).or_insert_with(|| {
            let (_, meta) = real.with_meta(folder).ok()?;
            Some((meta.dev(), meta.ino()))
        });
        shown_in.push((path, *identity));
    }
    let mut all = Vec::with_capacity(folders.len());
    for (number, (path, folder)) in folders.into_iter().enumerate() {
        let place = format!("/proc/closed-{number}");
        let mut inside = Vec::new();
        let identity = Some((folder.device, folder.inode));
        let inside_it = shown_in.iter().filter(|(_, above)| *above == identity);
        for (held, _) in inside_it {
            let name = held.file_name().unwrap_or_default();
            let place = [place.as_bytes(), b"/", name.as_bytes()].concat();
            let one = std::slice::from_ref(*held);
            let found = collect(one, |_| Cover::Held, Gone::Skipped, real)?;
            for (_, target) in found {
                let (name, stage) = (name.to_owned(), stage(&place)?);
                inside.push(Inside {
                    name,
                    stage,
                    target,
                });
            }
        }
        let closed = Closed {
            stage: stage(place.as_bytes())?,
            folder,
            inside,
        };
        all.push((path, closed));
    }
    Ok(all)
}

impl Closed {
    /// Returns whether a path still exists when the folder is at `at`.
    pub(super) fn shows(&self, at: &Path, path: &Path) -> bool {
        let below = path.strip_prefix(at).ok();
        let first = below.and_then(|below| below.iter().next());
        first.is_none_or(|first| self.inside.iter().any(|inside| inside.name == first))
    }

    /// Runs in the child before anything else is masked.
    #[expect(unsafe_code, reason = "see `View::apply`")]
    pub(super) unsafe fn apply(&self) -> io::Result<()> {
        // SAFETY: raw calls on prepared strings and on descriptors that are open.
        unsafe {
            check(libc::mkdir(self.stage.as_ptr(), 0o555))?;
            let folder = self.folder.open()?;
            for inside in &self.inside {
                check(libc::mkdir(inside.stage.as_ptr(), 0o555))?;
                let target = inside.target.open()?;
                let tree = called(libc::syscall(
                    libc::SYS_open_tree,
                    target,
                    c"".as_ptr(),
                    OPEN_TREE_CLONE | libc::O_CLOEXEC | libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
                ))?;
                called(libc::syscall(
                    libc::SYS_move_mount,
                    tree,
                    c"".as_ptr(),
                    libc::AT_FDCWD,
                    inside.stage.as_ptr(),
                    MOVE_MOUNT_FROM_EMPTY_PATH,
                ))?;
                libc::close(tree);
                libc::close(target);
            }
            let tree = called(libc::syscall(
                libc::SYS_open_tree,
                libc::AT_FDCWD,
                self.stage.as_ptr(),
                OPEN_TREE_CLONE | libc::O_CLOEXEC | libc::AT_RECURSIVE,
            ))?;
            read_only(tree, 0)?;
            called(libc::syscall(
                libc::SYS_move_mount,
                tree,
                c"".as_ptr(),
                folder,
                c"".as_ptr(),
                MOVE_MOUNT_EMPTY_PATHS,
            ))?;
            libc::close(tree);
            libc::close(folder);
            Ok(())
        }
    }
}
