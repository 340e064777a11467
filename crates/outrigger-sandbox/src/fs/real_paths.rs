//! Resolves the links of many files in few folders: each parent folder is looked up once. Building a sandbox resolves about a thousand
//! paths, and `canonicalize` checks every component of each.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Resolved paths, valid while one sandbox is built.
#[derive(Debug, Default)]
pub struct RealPaths {
    folders: HashMap<PathBuf, Result<PathBuf, Option<i32>>>,
}

impl RealPaths {
    /// Works like [`Path::canonicalize`].
    ///
    /// # Errors
    /// The system's error.
    pub fn of(&mut self, path: &Path) -> io::Result<PathBuf> {
        self.looked_up(path).map(|(real, _)| real)
    }

    /// Like [`Self::of`], with what is there.
    pub(crate) fn with_meta(&mut self, path: &Path) -> io::Result<(PathBuf, fs::Metadata)> {
        let (real, meta) = self.looked_up(path)?;
        let meta = match meta {
            Some(meta) => meta,
            None => fs::metadata(&real)?,
        };
        Ok((real, meta))
    }

    /// Returns the metadata if it was read on the way.
    fn looked_up(&mut self, path: &Path) -> io::Result<(PathBuf, Option<fs::Metadata>)> {
        let whole = || Ok((path.canonicalize()?, None));
        let is_plain = |it: Component<'_>| matches!(it, Component::RootDir | Component::Normal(_));
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return whole();
        };
        if !path.is_absolute() || !path.components().all(is_plain) {
            return whole();
        }
        let real = self.folder(above)?.join(name);
        let meta = fs::symlink_metadata(&real)?;
        if meta.is_symlink() {
            whole()
        } else {
            Ok((real, Some(meta)))
        }
    }

    /// Returns the nearest existing folder above a path, as named and without links.
    pub fn nearest<'p>(&mut self, path: &'p Path) -> Option<(&'p Path, PathBuf)> {
        let mut above = path.ancestors().skip(1);
        above.find_map(|it| Some((it, self.folder(it).ok()?)))
    }

    fn folder(&mut self, path: &Path) -> io::Result<PathBuf> {
        if let Some(known) = self.folders.get(path) {
            return known.clone().map_err(|code| match code {
                Some(code) => io::Error::from_raw_os_error(code),
                None => io::ErrorKind::Other.into(),
            });
        }
        let found = self.of(path);
        let known = match &found {
            Ok(real) => Ok(real.clone()),
            Err(error) => Err(error.raw_os_error()),
        };
        self.folders.insert(path.to_owned(), known);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn they_are_those_of_the_system() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/file"), "").unwrap();
        symlink("a", root.join("link")).unwrap();
        symlink("../a/b/file", root.join("a/inner")).unwrap();
        symlink("nowhere", root.join("broken")).unwrap();
        symlink("round", root.join("round")).unwrap();
        let names = [
            "",
            "a",
            "a/b/file",
            "link",
            "link/b",
            "link/b/file",
            "link/inner",
            "a/inner",
            "broken",
            "broken/x",
            "round/x",
            "none",
            "none/x/y",
            "a/b/file/x",
            "a/../a/b",
            "a/./b",
            "link/../link/b",
            "a/b/",
            "a//b",
        ];
        let mut paths = RealPaths::default();
        for name in names {
            let path = root.join(name);
            let kind = |found: io::Result<PathBuf>| found.map_err(|it| it.raw_os_error());
            assert_eq!(kind(paths.of(&path)), kind(path.canonicalize()), "{name}");
        }
        assert_eq!(paths.of(Path::new("/")).unwrap(), Path::new("/"));
        let (above, real) = paths
            .nearest(&root.join("link/x/y"))
            .map(|(it, real)| (it.to_owned(), real))
            .unwrap();
        assert_eq!((above, real), (root.join("link"), root.join("a")));
    }
}
