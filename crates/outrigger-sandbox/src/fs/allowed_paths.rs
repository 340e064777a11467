//! The paths that Landlock allows on systems without mount views. A Landlock rule allows a folder with everything below it, so in a
//! folder that contains something denied, all other entries are allowed one by one. Entries created later are not allowed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::fs::real_paths::RealPaths;

/// Maximum number of allowed paths; what lies beyond is not allowed.
const MAX_PIECES: usize = 20_000;

/// The allowed paths.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AllowedPaths {
    /// Files, and folders with everything below.
    pub(crate) allowed: Vec<PathBuf>,
    /// Folders that contain denied entries; their names may be listed.
    pub(crate) list: Vec<PathBuf>,
}

impl AllowedPaths {
    /// Computes the paths below `roots`, except those in `kept`. Links are skipped: their targets are allowed where they lie. Blocking.
    pub(crate) fn of(roots: &[PathBuf], kept: &[PathBuf], real: &mut RealPaths) -> Self {
        Self::of_fixed(roots, kept, &[], real)
    }

    /// Like [`Self::of`], but excludes what does not exist yet in the `fixed` folders.
    pub(crate) fn of_fixed(
        roots: &[PathBuf],
        kept: &[PathBuf],
        fixed: &[PathBuf],
        real: &mut RealPaths,
    ) -> Self {
        let mut all = |paths: &[PathBuf]| -> Vec<PathBuf> {
            paths.iter().flat_map(|it| real.of(it)).collect()
        };
        let apart = Apart {
            kept: all(kept),
            fixed: all(fixed),
        };
        let (mut paths, mut whole) = (Self::default(), Vec::new());
        for root in roots {
            match real.of(root) {
                Ok(real) if apart.divides(&real) => paths.add(&real, &apart),
                Ok(real) if apart.kept.iter().any(|it| real.starts_with(it)) => {}
                Ok(real) => whole.push((root, real)),
                Err(_) => paths.allowed.push(root.clone()),
            }
        }
        for (root, real) in whole {
            // Each rule costs five system calls.
            if !paths.allowed.iter().any(|it| real.starts_with(it)) {
                paths.allowed.push(root.clone());
            }
        }
        paths
    }

    fn add(&mut self, path: &Path, apart: &Apart) {
        if self.allowed.len() >= MAX_PIECES || apart.kept.iter().any(|it| it == path) {
            return;
        }
        if !apart.divides(path) {
            return self.allowed.push(path.to_owned());
        }
        self.list.push(path.to_owned());
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        // The listing tells what is a link.
        for entry in entries.filter(|it| it.file_type().is_ok_and(|kind| !kind.is_symlink())) {
            self.add(&entry.path(), apart);
        }
    }
}

/// The reasons why a folder is not allowed as a whole. Paths without links.
struct Apart {
    kept: Vec<PathBuf>,
    fixed: Vec<PathBuf>,
}

impl Apart {
    fn divides(&self, folder: &Path) -> bool {
        let mut all = self.kept.iter().chain(&self.fixed);
        all.any(|it| it.starts_with(folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_beside_is_allowed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        for file in [
            ".ssh/id",
            ".config/gh/hosts",
            ".config/nvim/x",
            "work/x",
            "a",
        ] {
            let path = home.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        std::os::unix::fs::symlink(".ssh", home.join("keys")).unwrap();
        let hidden = [".ssh", ".config/gh", "none"].map(|it| home.join(it));
        let real = &mut RealPaths::default();
        let mut paths = AllowedPaths::of(std::slice::from_ref(&home), &hidden, real);
        paths.allowed.sort();
        let at = |names: &[&str]| names.iter().map(|it| home.join(it)).collect::<Vec<_>>();
        assert_eq!(paths.allowed, at(&[".config/nvim", "a", "work"]));
        assert_eq!(paths.list, [home.clone(), home.join(".config")]);
        // A folder with nothing hidden in it stays whole, and a root inside a hidden path does not allow that path.
        for (root, read) in [
            ("work", vec!["work"]),
            (".ssh/id", vec![]),
            ("gone", vec!["gone"]),
        ] {
            assert_eq!(
                AllowedPaths::of(&at(&[root]), &hidden, real).allowed,
                at(&read),
                "{root}"
            );
        }
        // What another rule allows already has none of its own.
        let mut twice = AllowedPaths::of(&at(&["work/x", "work", "work", ""]), &hidden, real);
        twice.allowed.sort();
        assert_eq!(twice, paths);
    }
}
