//! The paths that Landlock allows where the system has no views. A Landlock rule allows a folder with everything below it, so in a folder
//! that holds something denied, everything else is allowed one by one. What comes into the folder later is not.

use std::fs;
use std::path::{Path, PathBuf};

/// Pieces at most: what lies beyond is not allowed.
const MAX_PIECES: usize = 20_000;

/// What is allowed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AllowedPaths {
    /// Files and folders with all below.
    pub(crate) allowed: Vec<PathBuf>,
    /// Folders with something kept in them, whose names may be listed.
    pub(crate) list: Vec<PathBuf>,
}

impl AllowedPaths {
    /// These files and folders, less those that are kept. Links are left out: what they lead to is allowed where it lies. Blocking.
    pub(crate) fn of(roots: &[PathBuf], kept: &[PathBuf]) -> Self {
        Self::of_fixed(roots, kept, &[])
    }

    /// The same without what is not there yet in these folders.
    pub(crate) fn of_fixed(roots: &[PathBuf], kept: &[PathBuf], fixed: &[PathBuf]) -> Self {
        let real = |paths: &[PathBuf]| -> Vec<PathBuf> {
            paths.iter().flat_map(|it| it.canonicalize()).collect()
        };
        let apart = Apart {
            kept: real(kept),
            fixed: real(fixed),
        };
        let mut paths = Self::default();
        for root in roots {
            match root.canonicalize() {
                Ok(real) if apart.divides(&real) => paths.add(&real, &apart),
                Ok(real) if apart.kept.iter().any(|it| real.starts_with(it)) => {}
                _ => paths.allowed.push(root.clone()),
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
        for path in entries.map(|it| it.path()).filter(|it| !it.is_symlink()) {
            self.add(&path, apart);
        }
    }
}

/// Why a folder is not allowed as a whole. Paths without links.
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
        let mut paths = AllowedPaths::of(std::slice::from_ref(&home), &hidden);
        paths.allowed.sort();
        let at = |names: &[&str]| names.iter().map(|it| home.join(it)).collect::<Vec<_>>();
        assert_eq!(paths.allowed, at(&[".config/nvim", "a", "work"]));
        assert_eq!(paths.list, [home.clone(), home.join(".config")]);
        // What has nothing hidden in it stays whole, and what is hidden is not allowed by a root in it.
        for (root, read) in [
            ("work", vec!["work"]),
            (".ssh/id", vec![]),
            ("gone", vec!["gone"]),
        ] {
            assert_eq!(
                AllowedPaths::of(&at(&[root]), &hidden).allowed,
                at(&read),
                "{root}"
            );
        }
    }
}
