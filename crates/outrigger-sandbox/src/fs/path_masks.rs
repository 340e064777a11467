//! Finds the files and folders that a process must not see or change, by a bounded walk over a project.

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

/// How a path is masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cover {
    /// Not masked; a folder is walked.
    None,
    /// Readable with everything below, and not writable. A folder is still walked for hidden entries.
    ReadOnly,
    /// Appears empty.
    Hidden,
}

/// The result of a walk, for [`crate::Policy::hide`] and [`crate::Policy::read_only`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Covers {
    /// Paths to hide.
    pub hide: Vec<PathBuf>,
    /// Paths to make read-only.
    pub read_only: Vec<PathBuf>,
    /// Folders that must not be moved, or another could replace them; their contents may be changed.
    pub held: Vec<PathBuf>,
    /// Folders that show only the held folders right below them and the process's own temporary folder, whatever else appears in them
    /// later. The contents of those may be changed; nothing else is created or removed.
    pub closed: Vec<PathBuf>,
    /// Folders in which nothing can be created; what exists when the process starts may be changed.
    pub fixed: Vec<PathBuf>,
}

impl Covers {
    /// Returns whether there is nothing to mask.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hide.is_empty()
            && self.read_only.is_empty()
            && self.held.is_empty()
            && self.closed.is_empty()
            && self.fixed.is_empty()
    }
}

/// Looks for paths to mask. Walks a project, so it blocks.
pub type CoversFn = Arc<dyn Fn() -> Result<Covers, SandboxError> + Send + Sync>;

/// The result of a walk and the way to repeat it: what was found may have been moved by the time a process starts.
#[derive(Clone, Default)]
pub struct CoverWalk {
    found: Covers,
    again: Option<CoversFn>,
}

impl CoverWalk {
    /// Keeps `found`, the result of an earlier call of `again`.
    #[must_use]
    pub fn new(found: Covers, again: CoversFn) -> Self {
        Self {
            found,
            again: Some(again),
        }
    }

    /// Returns what was found.
    #[must_use]
    pub fn covers(&self) -> &Covers {
        &self.found
    }

    /// Repeats the walk; returns `false` if there is no way to.
    pub(crate) fn renew(&mut self) -> Result<bool, SandboxError> {
        let Some(again) = &self.again else {
            return Ok(false);
        };
        self.found = again()?;
        Ok(true)
    }
}

impl fmt::Debug for CoverWalk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.found.fmt(f)
    }
}

impl PartialEq for CoverWalk {
    fn eq(&self, other: &Self) -> bool {
        self.found == other.found
    }
}

impl Eq for CoverWalk {}

/// Maximum number of files and folders in a walk.
pub const MAX_ENTRIES: usize = 300_000;
/// Maximum number of masked paths: each is a mount made at every start.
pub const MAX_COVERS: usize = 2_000;
/// How long a walk is restarted while folders move under it.
pub(crate) const WALK_TIMEOUT: Duration = Duration::from_secs(10);
/// File times are as coarse as the kernel's ticks and lag up to this much behind the clock.
const COARSE: Duration = Duration::from_millis(20);

/// How often a folder that has just changed is checked again.
const LOOKS: usize = 12;
/// After how many of these checks in a round there is a pause; also its maximum in microseconds.
const PAUSES: usize = 4;
const MAX_PAUSE_MICROS: u64 = 200;

/// Walks everything below `root` and calls `decide` for each path with the path relative to `root` and whether it is a folder. Links are
/// not followed, but a link whose own name is masked stands for its target. Folders that cannot be read are taken as empty, since a process
/// of this user cannot read them either.
///
/// # Errors
/// [`SandboxError::TooMany`] if there is more to check, or more to mask, than the limits allow; [`SandboxError::Moving`] if
/// folders keep moving, so that the result is unreliable. The caller must not start the process then.
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
    /// A folder is no longer where it was listed, or one has appeared: it could have been overlooked.
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
    /// Listed folders, by their number in the listing of the parent folder.
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
        // Each folder with whether an ancestor is read-only already.
        let mut folders = vec![(self.root.to_path_buf(), false)];
        let mut checked = 0;
        loop {
            while let Some((folder, frozen)) = folders.pop() {
                self.list(folder, frozen, decide, &mut folders)?;
            }
            // A folder that was moved during the walk has changed its new parent.
            let mut changing = Vec::new();
            while let Some(listed) = self.listed.get(checked) {
                checked += 1;
                let changed = match fs::symlink_metadata(&listed.path) {
                    Ok(meta) => status_changed(&meta),
                    // A project that does not exist contains nothing.
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

    /// Checks folders that have just changed, in unpredictable order: whatever moves back and forth between folders would have to be
    /// elsewhere every time.
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
                    let pause = random.hash_one((at, round)) % MAX_PAUSE_MICROS;
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

    /// Rechecks a folder that has changed since it was listed. New entries are added; an entry that was moved there restarts the walk.
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

    /// Decides about a path. Returns a folder that must be walked, with whether it is read-only.
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

/// Returns when a folder or its listing last changed. The modification time will not do, since any process can set it back.
fn status_changed(meta: &fs::Metadata) -> SystemTime {
    let seconds = Duration::from_secs(meta.ctime().unsigned_abs());
    let parts = Duration::from_nanos(meta.ctime_nsec().unsigned_abs());
    SystemTime::UNIX_EPOCH + seconds + parts
}

type Entry = (PathBuf, fs::FileType, u64);

/// Lists a folder. One that cannot be read is empty; one that no longer exists although it was listed was moved.
fn entries(folder: &Path, is_root: bool) -> Result<Vec<Entry>, Stop> {
    let gone = |error: &io::Error| {
        matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        )
    };
    // Do not go through a link that has replaced it.
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
    use outrigger_protocol::diagnose::Diagnose;
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
        // `decide` is called again for what changes during the walk.
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
            paths
                .iter()
                .map(|path| path.strip_prefix(root).unwrap())
                .map(|path| path.display().to_string())
                .collect()
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
        // Neither a hidden folder nor the target of a link was walked.
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
            if path.ends_with(".env") {
                Cover::Hidden
            } else {
                Cover::None
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
