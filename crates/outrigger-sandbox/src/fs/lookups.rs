//! The lookups of paths that the parts of one policy share.

use std::path::{Path, PathBuf};

use crate::fs::listings::Listings;
use crate::fs::real_paths::RealPaths;

/// What is on disk, looked up once for the computation of one policy or one start. Never kept longer: a later process must not be
/// confined by what was there before.
#[derive(Debug, Default)]
pub struct Lookups {
    /// Names in folders.
    pub listings: Listings,
    /// Paths without links.
    pub real: RealPaths,
}

impl Lookups {
    /// Returns the nearest existing folder above a path, as named and without links.
    pub fn nearest<'p>(&mut self, path: &'p Path) -> Option<(&'p Path, PathBuf)> {
        let mut above = path.ancestors().skip(1);
        above.find_map(|it| {
            let is_missing = self.listings.lacks(it);
            let real = (!is_missing).then(|| self.real.of(it).ok()).flatten()?;
            Some((it, real))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_nearest_folder_is_the_same_with_and_without_listings() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        symlink("a", root.join("link")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        for (name, near, real) in [
            ("link/x/y", "link", "a"),
            ("a/b/x", "a/b", "a/b"),
            ("dangling/x", "", ""),
            ("none/x", "", ""),
        ] {
            let path = root.join(name);
            let expected = Some((root.join(near), root.join(real)));
            let mut lookups = Lookups::default();
            for is_listed in [false, true] {
                let found = lookups.nearest(&path);
                let found = found.map(|(near, real)| (near.to_owned(), real));
                assert_eq!(found, expected, "{name}, {is_listed}");
                lookups = Lookups::default();
                lookups.listings.may_exist(&path);
                lookups.listings.may_exist(&root.join("x"));
            }
        }
    }
}
