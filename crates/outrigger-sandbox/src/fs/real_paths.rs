//! Paths without links, of many files that lie in a few folders: each folder above them is looked up once. Making a sandbox asks for a
//! thousand, and `canonicalize` looks at every step of each. Most of them are not there: of a folder that is asked for several, the names
//! are listed.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

/// Names in one folder that are asked about before the folder is listed: a list costs about as much as three of them.
const MAX_ASKED: usize = 3;
/// Folders with more entries are not listed.
const MAX_LISTED: usize = 2000;

/// What was looked up, for as long as somebody may rely on it: the making of one sandbox.
#[derive(Debug, Default)]
pub struct RealPaths {
    // By text: to hash and compare paths component by component takes most of a look-up.
    folders: HashMap<OsString, Result<PathBuf, Option<i32>>>,
    /// What lies in a folder without links.
    names: HashMap<OsString, Names>,
}

/// What is known of the names in a folder.
#[derive(Debug)]
enum Names {
    /// Nothing yet; so many were asked about.
    Asked(usize),
    /// All, in lower case.
    Listed(HashSet<OsString>),
    /// It cannot be listed, has too many, or has some that another spelling may reach.
    Unlisted,
}

impl Names {
    fn list(folder: &Path) -> Self {
        let Ok(entries) = fs::read_dir(folder) else {
            return Self::Unlisted;
        };
        let mut names = HashSet::new();
        for name in entries.map(|it| it.map(|it| it.file_name())) {
            match name {
                // Where case does not count, letters beyond ASCII fold in ways that are the file system's own.
                Ok(name) if name.is_ascii() && names.len() < MAX_LISTED => {
                    names.insert(name.to_ascii_lowercase());
                }
                _ => return Self::Unlisted,
            }
        }
        Self::Listed(names)
    }

    /// Whether it is certain that none of them is reached by this one, whether or not case counts.
    fn lacks(&self, name: &OsStr) -> bool {
        match self {
            Self::Listed(names) => !names.contains(&name.to_ascii_lowercase()),
            Self::Asked(_) | Self::Unlisted => false,
        }
    }
}

impl RealPaths {
    /// As [`Path::canonicalize`].
    ///
    /// # Errors
    /// Those of the system.
    pub fn of(&mut self, path: &Path) -> io::Result<PathBuf> {
        let Some((above, name)) = split(path) else {
            return path.canonicalize();
        };
        let above = self.folder(above)?;
        let real = above.join(name);
        if self.is_missing(&above, name) {
            return Err(Errno::NOENT.into());
        }
        match fs::symlink_metadata(&real)?.is_symlink() {
            true => path.canonicalize(),
            false => Ok(real),
        }
    }

    /// As [`Path::exists`].
    pub fn exists(&mut self, path: &Path) -> bool {
        self.of(path).is_ok()
    }

    /// Whether something has this name, be it a link that leads nowhere.
    pub fn has_name(&mut self, path: &Path) -> bool {
        let missing = split(path).is_some_and(|(above, name)| {
            let above = self.folder(above);
            above.is_ok_and(|above| self.is_missing(&above, name))
        });
        !missing && fs::symlink_metadata(path).is_ok()
    }

    /// The nearest folder above a path that is there, as it is named and without links.
    pub fn nearest<'p>(&mut self, path: &'p Path) -> Option<(&'p Path, PathBuf)> {
        let mut above = path.ancestors().skip(1);
        above.find_map(|it| Some((it, self.folder(it).ok()?)))
    }

    fn folder(&mut self, path: &Path) -> io::Result<PathBuf> {
        if let Some(known) = self.folders.get(path.as_os_str()) {
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
        self.folders.insert(path.as_os_str().to_owned(), known);
        found
    }

    /// Whether a folder without links is known not to have a name.
    fn is_missing(&mut self, folder: &Path, name: &OsStr) -> bool {
        let known = match self.names.get_mut(folder.as_os_str()) {
            Some(known) => known,
            None => self
                .names
                .entry(folder.as_os_str().to_owned())
                .or_insert(Names::Asked(0)),
        };
        match known {
            Names::Asked(asked) if *asked < MAX_ASKED => *asked += 1,
            Names::Asked(_) => *known = Names::list(folder),
            Names::Listed(_) | Names::Unlisted => {}
        }
        known.lacks(name)
    }
}

/// The folder of an absolute path without `.` and `..`, and its name there.
fn split(path: &Path) -> Option<(&Path, &OsStr)> {
    let is_plain = |it: Component<'_>| matches!(it, Component::RootDir | Component::Normal(_));
    let is_whole = path.is_absolute() && path.components().all(is_plain);
    is_whole.then_some((path.parent()?, path.file_name()?))
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
        // The second time from lists.
        for name in names.into_iter().chain(names) {
            let path = root.join(name);
            let kind = |found: io::Result<PathBuf>| found.map_err(|it| it.raw_os_error());
            assert_eq!(kind(paths.of(&path)), kind(path.canonicalize()), "{name}");
            assert_eq!(paths.exists(&path), path.exists(), "{name}");
            let has_name = fs::symlink_metadata(&path).is_ok();
            assert_eq!(paths.has_name(&path), has_name, "{name}");
        }
        let is_listed = |it: &Names| matches!(it, Names::Listed(_));
        assert!(paths.names.values().any(is_listed));
        // What a list does not show as it is spelled may be reached by it where case does not count.
        fs::write(root.join("Case"), "").unwrap();
        assert!(!Names::list(&root).lacks(OsStr::new("cASE")));
        assert!(Names::list(&root).lacks(OsStr::new("cases")));
        fs::write(root.join("ca\u{17f}e"), "").unwrap();
        assert!(!Names::list(&root).lacks(OsStr::new("cases")));
        assert_eq!(paths.of(Path::new("/")).unwrap(), Path::new("/"));
        let (above, real) = paths
            .nearest(&root.join("link/x/y"))
            .map(|(it, real)| (it.to_owned(), real))
            .unwrap();
        assert_eq!((above, real), (root.join("link"), root.join("a")));
    }
}
