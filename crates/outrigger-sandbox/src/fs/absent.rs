//! Files that do not exist when a process starts and that it must not create, because other programs would later act on
//! them (`.git/commondir`). A mount cannot mask a name that does not exist, so whatever appears under it is moved aside.

mod folder_entry;
mod record;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

pub use folder_entry::FolderEntry;
use outrigger_stdx::sync::lock;
use record::Record;

use crate::fs::lookups::Lookups;
pub(crate) use record::{end, sweep};

/// The suffix of a name that was moved aside.
pub const SUFFIX: &str = ".put-aside";

/// Undoes changes that no file name shows and returns their descriptions as sentences. The argument says whether the
/// process has ended.
pub type ClearFn = Arc<dyn Fn(bool) -> Vec<String> + Send + Sync>;

/// A check that runs while a process runs and once more after it has ended.
#[derive(Clone, Default)]
pub struct Clear(Option<ClearFn>);

impl Clear {
    /// Creates a check from this function, which may block.
    #[must_use]
    pub fn new(clear: ClearFn) -> Self {
        Self(Some(clear))
    }

    /// Runs the existing check first, then this function.
    #[must_use]
    pub fn and(self, then: ClearFn) -> Self {
        let Some(first) = self.0 else {
            return Self::new(then);
        };
        Self::new(Arc::new(move |has_ended| {
            let mut undone = first(has_ended);
            undone.extend(then(has_ended));
            undone
        }))
    }
}

/// Two checks are never equal.
impl PartialEq for Clear {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Eq for Clear {}

impl fmt::Debug for Clear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clear").field(&self.0.is_some()).finish()
    }
}

/// Names that must stay free while a process runs, plus other changes to undo.
#[derive(Clone, Debug, Default)]
pub(crate) struct Absent(Arc<Names>);

/// A name that must stay free.
#[derive(Clone, Debug)]
struct Free {
    /// The nearest existing folder above it, without links.
    base: PathBuf,
    path: PathBuf,
}

impl Free {
    /// Returns `None` if something exists at the path.
    fn of(path: &Path, lookups: &mut Lookups) -> Option<Self> {
        if lookups.listings.is_there(path) {
            return None;
        }
        let (above, base) = lookups.nearest(path)?;
        let path = base.join(path.strip_prefix(above).ok()?);
        Some(Self { base, path })
    }

    fn place(&self) -> Option<FolderEntry> {
        FolderEntry::of(&self.base, &self.path)
    }

    /// Returns the first missing name on the way. Many paths share it, and it rarely appears.
    fn first(&self) -> PathBuf {
        let below = self.path.strip_prefix(&self.base).ok();
        let first = below.and_then(|below| below.components().next());
        self.base
            .join(first.map_or(OsStr::new(""), |it| it.as_os_str()))
    }
}

#[derive(Debug, Default)]
struct Names {
    free: Vec<Free>,
    aside: Mutex<Vec<PathBuf>>,
    clear: Clear,
    cleared: Mutex<Vec<String>>,
    /// Set once the check after the end of the process has run.
    is_over: AtomicBool,
    record: OnceLock<Record>,
}

impl Absent {
    /// Keeps those of `paths` where nothing exists now.
    pub(crate) fn of(paths: &[PathBuf], clear: Clear, lookups: &mut Lookups) -> Self {
        let free = paths
            .iter()
            .filter_map(|it| Free::of(it, lookups))
            .collect();
        Self(Arc::new(Names {
            free,
            clear,
            ..Names::default()
        }))
    }

    /// Records the names in this folder for the next start, until the process is over.
    pub(crate) fn record(&self, folder: &Path) {
        if self.0.free.is_empty() {
            return;
        }
        match Record::write(folder, &self.0.free) {
            Ok(record) => drop(self.0.record.set(record)),
            // A full disk must not stop the agent.
            Err(error) => tracing::warn!("[sandbox] names are not written down: {error}"),
        }
    }

    /// Records that the host is alive.
    pub(crate) fn beat(&self) {
        if let Some(record) = self.0.record.get() {
            record.beat();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.free.is_empty() && self.0.clear.0.is_none()
    }

    /// Undoes other changes and returns all that were undone so far.
    pub(crate) fn clear(&self, has_ended: bool) -> Vec<String> {
        let Some(clear) = &self.0.clear.0 else {
            return Vec::new();
        };
        let mut cleared = lock(&self.0.cleared);
        if self.0.is_over.load(Ordering::SeqCst) {
            return cleared.clone();
        }
        self.0.is_over.store(has_ended, Ordering::SeqCst);
        for what in clear(has_ended) {
            tracing::warn!("[sandbox] {what}");
            if !cleared.contains(&what) {
                cleared.push(what);
            }
        }
        cleared.clone()
    }

    /// Moves aside whatever has appeared and returns everything moved so far, by its original path.
    pub(crate) fn move_aside(&self) -> Vec<PathBuf> {
        let mut aside = lock(&self.0.aside);
        let mut seen: HashMap<PathBuf, bool> = HashMap::new();
        for free in &self.0.free {
            let first = free.first();
            if !*seen.entry(first).or_insert_with_key(|it| is_there(it)) {
                continue;
            }
            let Some(place) = free.place() else { continue };
            let path = &free.path;
            place.take_away("");
            if !aside.contains(path) {
                aside.push(path.clone());
            }
        }
        aside.clone()
    }
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_appears_is_moved_aside_and_what_was_there_stays() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("old"), "").unwrap();
        let absent = Absent::of(
            &[at("old"), at("file"), at("folder"), at("link")],
            Clear::default(),
            &mut Lookups::default(),
        );
        assert!(absent.move_aside().is_empty());
        fs::write(at("file"), "1").unwrap();
        fs::create_dir_all(at("folder/deep")).unwrap();
        std::os::unix::fs::symlink("/etc", at("link")).unwrap();
        assert_eq!(absent.move_aside(), ["file", "folder", "link"].map(at));
        fs::write(at("file"), "2").unwrap();
        assert_eq!(absent.move_aside().len(), 3);
        assert!(at("old").exists() && !at("file").exists() && !at("folder").exists());
        let kept = fs::read_dir(dir.path()).unwrap().flatten().filter(|it| {
            it.file_name()
                .to_string_lossy()
                .starts_with("file.put-aside-")
        });
        let mut texts: Vec<String> = kept
            .map(|it| fs::read_to_string(it.path()).unwrap())
            .collect();
        texts.sort();
        assert_eq!(texts, ["1", "2"]);
        assert!(Path::new("/etc").is_dir());
    }
}
