//! State of a project shared by running commands: a file created by one of them did not exist before for the next, in this or
//! another process of Outrigger.
//!
//! Processes share it by a file in their state folder. A host with a running command holds a shared lock on it, so the first one
//! gets it exclusively and records the state. The kernel releases the lock of a killed process.

use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Seek as _, Write as _};
use std::ops::Deref;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use outrigger_stdx::sync::lock;
use serde::{Deserialize, Serialize};

use crate::content::Before;

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Shares the state of running commands with other processes, by files in this folder, which only the user can access. The first
/// call takes effect.
pub fn share_in(folder: &Path) {
    FOLDER.get_or_init(|| folder.to_owned());
}

/// State found by the first of the running commands.
#[derive(Debug, Default)]
pub(crate) struct First {
    before: Before,
    /// The lock, as long as one of them runs.
    _held: Option<File>,
}

impl From<Before> for First {
    fn from(before: Before) -> Self {
        Self {
            before,
            _held: None,
        }
    }
}

impl Deref for First {
    type Target = Before;

    fn deref(&self) -> &Before {
        &self.before
    }
}

/// The running commands, by project.
pub(crate) struct Running {
    /// Subject of the state.
    name: &'static str,
    of_this_process: Mutex<Vec<(PathBuf, Weak<First>)>>,
}

impl Running {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self {
            name,
            of_this_process: Mutex::new(Vec::new()),
        }
    }

    /// Returns the current state, or that found by a command that still runs. Blocking.
    pub(crate) fn first(&self, project: &Path, now: Before) -> Arc<First> {
        self.first_in(FOLDER.get().map(PathBuf::as_path), project, now)
    }

    fn first_in(&self, folder: Option<&Path>, project: &Path, now: Before) -> Arc<First> {
        let mut running = lock(&self.of_this_process);
        running.retain(|(_, first)| first.strong_count() > 0);
        let of_this = running.iter().find(|(it, _)| it == project);
        if let Some(first) = of_this.and_then(|(_, first)| first.upgrade()) {
            return first;
        }
        let shared = folder.map(|folder| share(&self.file(folder, project), project, &now));
        let first = match shared {
            Some(Ok(first)) => first,
            None => now.into(),
            Some(Err(error)) => {
                tracing::warn!("[sandbox] commands of other processes are not known: {error}");
                now.into()
            }
        };
        let first = Arc::new(first);
        running.push((project.to_owned(), Arc::downgrade(&first)));
        first
    }

    fn file(&self, folder: &Path, project: &Path) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        project.hash(&mut hasher);
        folder.join(format!("{}-{:016x}.json", self.name, hasher.finish()))
    }
}

/// Content of a file.
#[derive(Serialize, Deserialize)]
struct Record {
    project: PathBuf,
    before: Before,
}

/// Joins the record of a project: creates it if no command runs.
fn share(path: &Path, project: &Path, now: &Before) -> io::Result<First> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    let before = match file.try_lock() {
        Ok(()) => {
            let record = Record {
                project: project.to_owned(),
                before: now.clone(),
            };
            let text = serde_json::to_vec(&record)?;
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(&text)?;
            file.lock_shared()?;
            record.before
        }
        Err(TryLockError::WouldBlock) => {
            file.lock_shared()?;
            let text = outrigger_files::read_open(file.try_clone()?, outrigger_files::DATA)?;
            let record: Record = serde_json::from_slice(&text)?;
            if record.project == project {
                record.before
            } else {
                now.clone()
            }
        }
        Err(TryLockError::Error(error)) => return Err(error),
    };
    Ok(First {
        before,
        _held: Some(file),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Content;

    fn found(names: &[&str]) -> Before {
        let content = |name: &str| Content::Link(PathBuf::from(name));
        names
            .iter()
            .map(|name| (PathBuf::from(name), content(name)))
            .collect()
    }

    #[test]
    fn what_a_command_of_another_process_made_was_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let first_in = |running: &Running, project: &str, now: &[&str]| {
            running.first_in(Some(&state), Path::new(project), found(now))
        };
        // Each represents a process.
        let [one, other] = [Running::new("x"), Running::new("x")];
        let a = first_in(&one, "/p", &["a"]);
        assert_eq!(**a, found(&["a"]));
        let b = first_in(&other, "/p", &["a", "made"]);
        assert_eq!(**b, found(&["a"]));
        assert_eq!(**first_in(&other, "/q", &["q"]), found(&["q"]));
        // The first has ended, and the second still runs.
        drop(a);
        let c = first_in(&one, "/p", &["a", "made"]);
        assert_eq!(**c, found(&["a"]));
        drop((b, c));
        assert_eq!(**first_in(&one, "/p", &["mine"]), found(&["mine"]));
        // Its final content does not matter to those who do not share.
        let alone = other.first_in(None, Path::new("/p"), found(&["z"]));
        assert_eq!(**alone, found(&["z"]));
    }
}
