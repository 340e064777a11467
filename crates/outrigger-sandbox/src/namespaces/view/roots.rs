//! Mounts everything read-only except the writable paths.

use std::io;
use std::path::PathBuf;

use super::mount::{MOVE_MOUNT_EMPTY_PATHS, OPEN_TREE_CLONE, read_only};
use super::target::{Cover, Target};
use crate::fs::real_paths::RealPaths;
use crate::namespaces::syscall::{called, check};
use crate::policy::Policy;

/// Maximum number of writable files and folders: the child cannot allocate memory for more.
const MAX_ROOTS: usize = 64;

/// The writable paths, none below another.
#[derive(Debug, Clone, Default)]
pub(super) struct Roots(Vec<Target>);

impl Roots {
    /// Returns `None` if everything is writable.
    pub(super) fn of(policy: &Policy, real: &mut RealPaths) -> io::Result<Option<Self>> {
        if policy.is_open() {
            return Ok(None);
        }
        // A path that cannot be read is not writable either. Devices, pipes and sockets can be written regardless of their mount.
        let mut looked = |path: &PathBuf| {
            let (path, meta) = real.with_meta(path).ok()?;
            let is_mounted = meta.is_dir() || meta.is_file();
            let target = Target::of(&path, &meta, Cover::Held).ok()?;
            is_mounted.then_some((path, target))
        };
        let mut found: Vec<(PathBuf, Target)> =
            policy.write.iter().filter_map(&mut looked).collect();
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut roots: Vec<(PathBuf, Target)> = Vec::new();
        for (path, target) in found {
            let above = |(root, _): &(PathBuf, Target)| path.starts_with(root);
            if !roots.iter().any(above) {
                roots.push((path, target));
            }
        }
        if roots.len() > MAX_ROOTS {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "{} files and folders may be written, and {MAX_ROOTS} at most can be",
                    roots.len()
                ),
            ));
        }
        Ok(Some(Self(
            roots.into_iter().map(|(_, target)| target).collect(),
        )))
    }

    /// Runs in the child before anything else is mounted. Clones the mounts of the writable paths, makes everything
    /// read-only and puts the clones back, so that read-only mounts inside them stay read-only.
    #[expect(unsafe_code, reason = "see `View::apply`")]
    pub(super) fn apply(&self) -> io::Result<()> {
        let mut trees = [-1; MAX_ROOTS];
        // SAFETY: raw calls on literals and on descriptors that are open.
        unsafe {
            for (tree, target) in trees.iter_mut().zip(&self.0) {
                let place = target.open()?;
                *tree = called(libc::syscall(
                    libc::SYS_open_tree,
                    place,
                    c"".as_ptr(),
                    OPEN_TREE_CLONE | libc::O_CLOEXEC | libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
                ))?;
                libc::close(place);
            }
            let root = libc::open(c"/".as_ptr(), libc::O_PATH | libc::O_CLOEXEC);
            check(root)?;
            read_only(root, libc::AT_RECURSIVE)?;
            libc::close(root);
            for (tree, target) in trees.iter().zip(&self.0) {
                let place = target.open()?;
                called(libc::syscall(
                    libc::SYS_move_mount,
                    *tree,
                    c"".as_ptr(),
                    place,
                    c"".as_ptr(),
                    MOVE_MOUNT_EMPTY_PATHS,
                ))?;
                libc::close(*tree);
                libc::close(place);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn roots(write: Vec<PathBuf>) -> io::Result<Option<Vec<String>>> {
        let policy = Policy {
            write,
            ..Policy::default()
        };
        let name = |root: &Target| root.path.to_string_lossy().into_owned();
        let real = &mut RealPaths::default();
        Ok(Roots::of(&policy, real)?.map(|roots| roots.0.iter().map(name).collect()))
    }

    #[test]
    fn what_may_be_written_is_mounted_once() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| fs::canonicalize(dir.path()).unwrap().join(name);
        for folder in ["a/inner", "ab", "b"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        fs::write(at("b/file"), "").unwrap();
        std::os::unix::fs::symlink(at("b"), at("link")).unwrap();
        let text = |name: &str| at(name).to_string_lossy().into_owned();
        for (write, mounted) in [
            (
                vec![at("a/inner"), at("a"), at("ab")],
                vec![text("a"), text("ab")],
            ),
            (vec![at("link"), at("b/file")], vec![text("b")]),
            (vec![at("b/file")], vec![text("b/file")]),
            (
                vec!["/dev/null".into(), at("none"), at("b/file/below")],
                vec![],
            ),
        ] {
            assert_eq!(roots(write.clone()).unwrap(), Some(mounted), "{write:?}");
        }
        assert_eq!(roots(vec!["/".into(), at("a")]).unwrap(), None);
    }

    #[test]
    fn more_than_can_be_mounted_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let folders: Vec<PathBuf> = (0..=MAX_ROOTS)
            .map(|n| dir.path().join(n.to_string()))
            .collect();
        for folder in &folders {
            fs::create_dir(folder).unwrap();
        }
        let error = roots(folders).unwrap_err().to_string();
        assert_eq!(
            error,
            "65 files and folders may be written, and 64 at most can be"
        );
    }
}
