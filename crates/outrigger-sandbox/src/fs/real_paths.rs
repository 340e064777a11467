//! Resolves the links of many files in few folders: each parent folder is looked up once. Building a sandbox resolves about a thousand
//! paths, and `canonicalize` checks every component of each.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Resolved paths, valid while one policy is computed or one process is started.
#[derive(Debug, Default)]
pub struct RealPaths(HashMap<OsString, Result<Found, Option<i32>>>);

/// A path without links.
#[derive(Debug)]
struct Found {
    real: PathBuf,
    /// What is there, if that was read on the way.
    meta: Option<fs::Metadata>,
}

impl RealPaths {
    /// Works like [`Path::canonicalize`].
    ///
    /// # Errors
    /// The system's error.
    pub fn of(&mut self, path: &Path) -> io::Result<PathBuf> {
        Ok(self.found(path)?.real.clone())
    }

    /// Like [`Self::of`], with what is there.
    pub(crate) fn with_meta(&mut self, path: &Path) -> io::Result<(PathBuf, fs::Metadata)> {
        let Found { real, meta } = self.found(path)?;
        let meta = match meta {
            Some(meta) => meta.clone(),
            None => fs::metadata(real)?,
        };
        Ok((real.clone(), meta))
    }

    fn found(&mut self, path: &Path) -> io::Result<&Found> {
        // By bytes: comparing paths component by component takes longer.
        let key = path.as_os_str();
        if !self.0.contains_key(key) {
            let found = self.look_up(path).map_err(|error| error.raw_os_error());
            self.0.insert(key.to_owned(), found);
        }
        match self.0.get(key) {
            Some(Ok(found)) => Ok(found),
            Some(Err(Some(code))) => Err(io::Error::from_raw_os_error(*code)),
            Some(Err(None)) | None => Err(io::ErrorKind::Other.into()),
        }
    }

    fn look_up(&mut self, path: &Path) -> io::Result<Found> {
        let whole = || {
            let real = path.canonicalize()?;
            Ok(Found { real, meta: None })
        };
        let is_plain = |it: Component<'_>| matches!(it, Component::RootDir | Component::Normal(_));
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return whole();
        };
        if !path.is_absolute() || !path.components().all(is_plain) {
            return whole();
        }
        let real = self.found(above)?.real.join(name);
        let meta = fs::symlink_metadata(&real)?;
        if meta.is_symlink() {
            whole()
        } else {
            Ok(Found {
                real,
                meta: Some(meta),
            })
        }
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
    }
}
