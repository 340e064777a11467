//! Finding the files and folders that a process is not to see, or not to change: a bounded walk over a project.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::unix::fs::{DirEntryExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::error::SandboxError;

/// What is to become of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cover {
    /// Nothing; a folder is looked into.
    None,
    /// It can be read, with all below, and not changed. A folder is looked into for what is to be hidden.
    ReadOnly,
    /// It looks empty.
    Hidden,
}

/// What a walk found, for [`crate::Policy::hide`] and [`crate::Policy::read_only`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Covers {
    /// To be hidden.
    pub hide: Vec<PathBuf>,
    /// To be kept from changes.
    pub read_only: Vec<PathBuf>,
    /// Folders that stay where they are, or another could be put in their place; what they hold may be changed.
    pub held: Vec<PathBuf>,
    /// Folders of which the held folders right below them, and the process's own for temporary files, are seen and nothing else, whatever comes into them later. What
    /// they hold may be changed; nothing else is made or taken away.
    pub closed: Vec<PathBuf>,
    /// Folders in which nothing new is made; what they hold when the process starts may be changed.
    pub fixed: Vec<PathBuf>,
}

impl Covers {
    /// Whether there is nothing to cover.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hide.is_empty()
            && self.read_only.is_empty()
            && self.held.is_empty()
            && self.closed.is_empty()
            && self.fixed.is_empty()
    }
}

/// Looks for what is to be covered. It walks a project, so it blocks.
pub type CoversFn = Arc<dyn Fn() -> Result<Covers, SandboxError> + Send + Sync>;

/// What was found, and the way to look for it again: what was found a moment ago may have been moved by the time when a
/// process starts.
#[derive(Clone, Default)]
pub struct Kept {
    found: Covers,
    again: Option<CoversFn>,
}

impl Kept {
    /// What `again` has found.
    #[must_use]
    pub fn new(found: Covers, again: CoversFn) -> Self {
        Self {
            found,
            again: Some(again),
        }
    }

    /// What was found.
    #[must_use]
    pub fn covers(&self) -> &Covers {
        &self.found
    }

    /// Looks again; false when there is no way to.
    pub(crate) fn renew(&mut self) -> Result<bool, SandboxError> {
        let Some(again) = &self.again else {
            return Ok(false);
        };
        self.found = again()?;
        Ok(true)
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.found.fmt(f)
    }
}

impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        self.found == other.found
    }
}

impl Eq for Kept {}

/// Files and folders that a walk looks at.
pub const MAX_ENTRIES: usize = 300_000;
/// Paths that can be masked: each is a mount that is made at every start.
pub const MAX_COVERS: usize = 2_000;
/// How long a walk is begun again because folders are moved about under it.
pub(crate) const WALK_TIMEOUT: Duration = Duration::from_secs(10);
/// Times of files are as coarse as the kernel's ticks, and up to this far behind the clock.
const COARSE: Duration = Duration::from_millis(20);

/// How often a folder that has just changed is looked at again.
const LOOKS: usize = 12;
/// Behind how many of these looks of a round there is a pause, and the longest in microseconds.
const PAUSES: usize = 4;
const LONGEST_PAUSE: u64 = 200;

/// Walks everything below `root` and asks `decide` about each path, given relative to `root` and whether it is a folder.
/// Links are not followed, but one whose own name is decided about stands for what it leads to. Folders that cannot be
/// read hold nothing that a process of this user could read.
///
/// # Errors
/// [`SandboxError::TooMany`] when there is more than can be looked at, or more than can be covered;
/// [`SandboxError::Moving`] when folders are moved about all the time, so that none of what is seen can be relied on. The
/// caller must not start the process then.
pub fn find(
    root: &Path,
    mut decide: impl FnMut(&str, bool) -> Cover,
) -> Result<Covers, SandboxError> {
    let end = Instant::now() + WALK_TIMEOUT;
    loop {
        let mut walk = Walk::new(root);
        match walk.all(&mut decide) {
            Ok(()) => {
                walk.covers.hide.sort();
                walk.covers.read_only.sort();
                return Ok(walk.covers);
            }
            Err(Stop::Refused(error)) => return Err(error),
            Err(Stop::Moved) if Instant::now() < end => {}
            Err(Stop::Moved) => {
                return Err(SandboxError::Moving {
                    root: root.to_path_buf(),
                });
            }
        }
    }
}

enum Stop {
    Refused(SandboxError),
    /// A folder is not where it was listed, or has come where there was none: it could have been overlooked.
    Moved,
}

/// A folder that was listed.
struct Listed {
    path: PathBuf,
    frozen: bool,
    at: SystemTime,
}

struct Walk<'a> {
    root: &'a Path,
    covers: Covers,
    seen: usize,
    /// Folders that were listed, by the number in the listing of the one above.
    known: HashMap<PathBuf, u64>,
    numbers: HashSet<u64>,
    listed: Vec<Listed>,
}

impl<'a> Walk<'a> {
    fn new(root: &'a Path) -> Self {
        Self {
            root,
            covers: Covers::default(),
            seen: 0,
            known: HashMap::new(),
            numbers: HashSet::new(),
            listed: Vec::new(),
        }
    }

    fn all(&mut self, decide: &mut impl FnMut(&str, bool) -> Cover) -> Result<(), Stop> {
        // Each folder with whether it lies in one that is read-only already.
        let mut folders = vec![(self.root.to_path_buf(), false)];
        let mut checked = 0;
        loop {
            while let Some((folder, frozen)) = folders.pop() {
                self.list(folder, frozen, decide, &mut folders)?;
            }
            // What was moved while others were listed has changed the folder that it came to.
            let mut changing = Vec::new();
            while let Some(listed) = self.listed.get(checked) {
                checked += 1;
                let changed = match fs::symlink_metadata(&listed.path) {
                    Ok(meta) => status_changed(&meta),
                    // A project that is not there holds nothing.
                    Err(_) if listed.path == self.root => continue,
                    Err(_) => return Err(Stop::Moved),
                };
                if changed + COARSE >= listed.at {
                    changing.push((listed.path.clone(), listed.frozen));
                }
            }
            self.look_often(changing, decide, &mut folders)?;
            if folders.is_empty() {
                return Ok(());
            }
        }
    }

    /// Looks at folders that have just changed, in no order that anybody could foresee: what goes from one to another and
    /// back would have to be elsewhere every time.
    fn look_often(
        &mut self,
        mut changing: Vec<(PathBuf, bool)>,
        decide: &mut impl FnMut(&str, bool) -> Cover,
        folders: &mut Vec<(PathBuf, bool)>,
    ) -> Result<(), Stop> {
        let random = RandomState::new();
        let rounds = if changing.is_empty() { 0 } else { LOOKS };
        for round in 0..rounds {
            changing.sort_by_cached_key(|(path, _)| random.hash_one((path, round)));
            for (at, (path, frozen)) in changing.iter().enumerate() {
                self.look_again(path, *frozen, decide, folders)?;
                if at < PAUSES {
                    let pause = random.hash_one((at, round)) % LONGEST_PAUSE;
                    std::thread::sleep(Duration::from_micros(pause));
                }
            }
        }
        Ok(())
    }

    fn list(
        &mut self,
        folder: PathBuf,
        frozen: bool,
        decide: &mut impl FnMut(&str, bool) -> Cover,
        folders: &mut Vec<(PathBuf, bool)>,
    ) -> Result<(), Stop> {
        let at = SystemTime::now();
        for (path, kind, number) in entries(&folder, folder == self.root)? {
            self.seen += 1;
            if self.seen > MAX_ENTRIES {
                return Err(self.too_many("files and folders", MAX_ENTRIES));
            }
            if let Some(below) = self.take(&path, &kind, frozen, decide)? {
                self.known.insert(path.clone(), number);
                self.numbers.insert(number);
                folders.push((path, below));
            }
        }
        self.listed.push(Listed {
            path: folder,
            frozen,
            at,
        });
        Ok(())
    }

    /// A folder that has changed since it was listed: what is new in it is taken in, and what came from elsewhere is a reason to begin
    /// again.
    fn look_again(
        &mut self,
        folder: &Path,
        frozen: bool,
        decide: &mut impl FnMut(&str, bool) -> Cover,
        folders: &mut Vec<(PathBuf, bool)>,
    ) -> Result<(), Stop> {
        for (path, kind, number) in entries(folder, folder == self.root)? {
            if self.known.get(&path) == Some(&number) || self.is_covered(&path) {
                continue;
            }
            if kind.is_dir() && (self.known.contains_key(&path) || self.numbers.contains(&number)) {
                return Err(Stop::Moved);
            }
            if let Some(below) = self.take(&path, &kind, frozen, decide)? {
                self.known.insert(path.clone(), number);
                self.numbers.insert(number);
                folders.push((path, below));
            }
        }
        Ok(())
    }

    fn is_covered(&self, path: &PathBuf) -> bool {
        self.covers.hide.contains(path) || self.covers.read_only.contains(path)
    }

    /// Decides about a path; a folder that is to be looked into is answered, with whether it is read-only.
    fn take(
        &mut self,
        path: &Path,
        kind: &fs::FileType,
        frozen: bool,
        decide: &mut impl FnMut(&str, bool) -> Cover,
    ) -> Result<Option<bool>, Stop> {
        let Ok(relative) = path.strip_prefix(self.root) else {
            return Ok(None);
        };
        // A name that is not text matches what its readable part matches.
        let cover = decide(&relative.to_string_lossy(), kind.is_dir());
        let covers = &mut self.covers;
        let below = match cover {
            Cover::Hidden => {
                covers.hide.push(path.to_path_buf());
                None
            }
            Cover::ReadOnly => {
                if !frozen {
                    covers.read_only.push(path.to_path_buf());
                }
                kind.is_dir().then_some(true)
            }
            Cover::None => kind.is_dir().then_some(frozen),
        };
        if covers.hide.len() + covers.read_only.len() > MAX_COVERS {
            return Err(self.too_many("paths that a rule denies", MAX_COVERS));
        }
        Ok(below)
    }

    fn too_many(&self, what: &'static str, most: usize) -> Stop {
        Stop::Refused(SandboxError::TooMany {
            root: self.root.to_path_buf(),
            what,
            most,
        })
    }
}

/// When a folder or what it lists was last changed. The modification time would not do, since any process can set it
/// back.
fn status_changed(meta: &fs::Metadata) -> SystemTime {
    let seconds = Duration::from_secs(meta.ctime().unsigned_abs());
    let parts = Duration::from_nanos(meta.ctime_nsec().unsigned_abs());
    SystemTime::UNIX_EPOCH + seconds + parts
}

type Entry = (PathBuf, fs::FileType, u64);

/// What a folder holds. A folder that cannot be read holds nothing; one that is not there, though it was listed, was moved.
fn entries(folder: &Path, is_root: bool) -> Result<Vec<Entry>, Stop> {
    let gone = |error: &io::Error| {
        matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        )
    };
    // Not through a link that stands in its place now.
    let is_folder = fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir());
    if !is_folder && !is_root {
        return Err(Stop::Moved);
    }
    let listed = match fs::read_dir(folder) {
        Ok(listed) => listed,
        Err(error) if gone(&error) && !is_root => return Err(Stop::Moved),
        Err(_) => return Ok(Vec::new()),
    };
    let entry = |entry: fs::DirEntry| Some((entry.path(), entry.file_type().ok()?, entry.ino()));
    Ok(listed.flatten().filter_map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for folder in ["a/b", "keys/deep", "made/inner", "links"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        for file in [
            ".env",
            "a/b/.env",
            "keys/deep/id",
            "made/out.js",
            "made/inner/.env",
            "made/inner/x",
        ] {
            fs::write(root.join(file), "").unwrap();
        }
        symlink("../a", root.join("links/again")).unwrap();
        symlink("../a/b", root.join("links/.env")).unwrap();
        // What changes while it is looked at is asked about again.
        std::thread::sleep(2 * COARSE);
        let mut asked = 0;
        let found = find(root, |path, is_dir| {
            asked += 1;
            match path {
                "keys" if is_dir => Cover::Hidden,
                "made" => Cover::ReadOnly,
                path if path.starts_with("made/") && !path.ends_with(".env") => Cover::ReadOnly,
                path if path.ends_with(".env") => Cover::Hidden,
                _ => Cover::None,
            }
        })
        .unwrap();
        let shown = |paths: &[PathBuf]| -> Vec<String> {
            let relative = paths.iter().map(|path| path.strip_prefix(root).unwrap());
            relative.map(|path| path.display().to_string()).collect()
        };
        assert_eq!(
            shown(&found.hide),
            [".env", "a/b/.env", "links/.env", "made/inner/.env"]
                .into_iter()
                .chain(["keys"])
                .collect::<std::collections::BTreeSet<_>>()
                .into_iter()
                .collect::<Vec<_>>()
        );
        assert_eq!(shown(&found.read_only), ["made"]);
        // Neither what is hidden as a whole nor what a link leads to was looked into.
        assert_eq!(asked, 13);
    }

    #[test]
    fn a_time_that_was_set_back_hides_no_move() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for folder in ["one", "two"] {
            fs::create_dir_all(root.join(folder).join("deep")).unwrap();
            fs::write(root.join(folder).join("deep/.env"), "").unwrap();
            fs::write(root.join(folder).join("mark"), "").unwrap();
        }
        std::thread::sleep(2 * COARSE);
        let mut moved = None;
        let found = find(root, |path, _| {
            // The first of the two has been listed, the second has not.
            if let (Some(here), None) = (path.strip_suffix("/mark"), &moved) {
                let there = if here == "one" { "two" } else { "one" };
                let to = root.join(here).join("moved");
                fs::rename(root.join(there).join("deep"), &to).unwrap();
                for folder in [here, there] {
                    let folder = fs::File::open(root.join(folder)).unwrap();
                    folder.set_modified(SystemTime::UNIX_EPOCH).unwrap();
                }
                moved = Some(to);
            }
            match path.ends_with(".env") {
                true => Cover::Hidden,
                false => Cover::None,
            }
        })
        .unwrap();
        let moved = moved.unwrap().join(".env");
        assert!(found.hide.contains(&moved), "{found:?}");
    }

    #[test]
    fn more_than_can_be_covered_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..=MAX_COVERS {
            fs::write(dir.path().join(number.to_string()), "").unwrap();
        }
        let error = find(dir.path(), |_, _| Cover::Hidden).unwrap_err();
        assert_eq!(error.code(), "spawn.too_many");
        assert!(find(dir.path(), |_, _| Cover::None).is_ok());
    }
}
