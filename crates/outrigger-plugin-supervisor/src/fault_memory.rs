//! Faults of plugins that are remembered beyond the end of the process: the breakers of their hooks (A8), and the plugins that
//! run in their own process since they held up the shared one. Otherwise a program that runs for one prompt would find them out
//! again, and pay the deadlines, each time.
//!
//! One file for each project, replaced whole. An entry belongs to one version of a plugin: a new version starts without faults.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use outrigger_files::Readers;
use outrigger_kernel::breaker::SavedBreaker;
use outrigger_plugin_registry::Registry;
use outrigger_plugin_status::BreakerMemory;
use outrigger_protocol::Millis;
use serde::{Deserialize, Serialize};

use crate::launch::short_digest;

/// Time that a plugin keeps its own process without a new fault.
const QUARANTINE: Millis = 24 * 3_600_000;
/// Maximum number of entries of either kind; a larger file is started over.
const MAX_ENTRIES: usize = 1_000;

/// The file of a project.
#[derive(Clone, Debug)]
pub struct FaultMemory(PathBuf);

#[derive(Debug, Default, Serialize, Deserialize)]
struct StoredFaults {
    /// Keyed by `VERSION PLACE`.
    #[serde(default)]
    breakers: BTreeMap<String, SavedBreaker>,
    /// Keyed by version.
    #[serde(default)]
    quarantined: BTreeMap<String, Quarantined>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Quarantined {
    cause: String,
    at: Millis,
}

impl FaultMemory {
    /// Returns the file of a project in the data folder.
    #[must_use]
    pub fn new(data: &Path, project: &Path) -> Self {
        let name = short_digest(project.as_os_str().as_encoded_bytes());
        Self(data.join("plugin-faults").join(format!("{name}.json")))
    }

    /// Returns why this version of a plugin runs in its own process.
    #[must_use]
    pub fn quarantine(&self, version: &str, now: Millis) -> Option<String> {
        let entry = self.read().quarantined.remove(version)?;
        (now.saturating_sub(entry.at) < QUARANTINE).then_some(entry.cause)
    }

    /// Records that this version of a plugin gets its own process for a while.
    pub fn keep_quarantine(&self, version: &str, cause: &str, now: Millis) {
        let (version, cause) = (version.to_owned(), cause.to_owned());
        self.change(|known| {
            let recent = |it: &Quarantined| now.saturating_sub(it.at) < QUARANTINE;
            known.quarantined.retain(|_, entry| recent(entry));
            let entry = Quarantined { cause, at: now };
            known.quarantined.insert(version, entry);
        });
    }

    /// Reads the file; an unreadable file counts as empty, since faults are found out again.
    fn read(&self) -> StoredFaults {
        outrigger_files::read(&self.0, outrigger_files::DATA)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    }

    fn change(&self, change: impl FnOnce(&mut StoredFaults)) {
        let changed = self.try_change(change);
        if let Err(error) = changed {
            tracing::debug!("[plugin] cannot write {}: {error}", self.0.display());
        }
    }

    /// Changes the file under a lock, so that no change of another process is lost.
    fn try_change(&self, change: impl FnOnce(&mut StoredFaults)) -> io::Result<()> {
        let _lock = outrigger_files::lock(&self.0.with_extension("lock"))?;
        let mut known = self.read();
        if known.breakers.len().max(known.quarantined.len()) >= MAX_ENTRIES {
            known = StoredFaults::default();
        }
        change(&mut known);
        let bytes = serde_json::to_vec(&known).map_err(io::Error::other)?;
        outrigger_files::replace(&self.0, &bytes, Readers::Owner)
    }
}

impl BreakerMemory for FaultMemory {
    fn recall(&self, who: &str) -> Vec<(String, SavedBreaker)> {
        let known = self.read().breakers.into_iter();
        known
            .filter_map(|(name, kept)| {
                let place = name.strip_prefix(who)?.strip_prefix(' ')?;
                (!place.contains(' ')).then(|| (place.to_owned(), kept))
            })
            .collect()
    }

    fn keep(&self, who: &str, place: &str, kept: Option<SavedBreaker>) {
        let name = format!("{who} {place}");
        self.change(|known| {
            match kept {
                Some(kept) => known.breakers.insert(name, kept),
                None => known.breakers.remove(&name),
            };
        });
    }
}

/// Marks the plugins that held up the shared process in an earlier start for their own process. Returns the name of each plugin's
/// version.
pub fn recall(memory: &FaultMemory, registry: &Registry, now: Millis) -> BTreeMap<usize, String> {
    let versions: BTreeMap<usize, String> = (0..registry.count())
        .filter_map(|index| Some((index, registry.with(index, |plugin| plugin.version_key())??)))
        .collect();
    for (index, version) in &versions {
        if let Some(cause) = memory.quarantine(version, now) {
            registry.quarantined_before(*index, &cause);
        }
    }
    versions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_remembered_for_its_time_and_a_broken_file_says_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let memory = FaultMemory::new(dir.path(), Path::new("/project"));
        let kept = SavedBreaker {
            until: Some(7),
            ..SavedBreaker::default()
        };
        memory.keep("p v1", "chat.message", Some(kept.clone()));
        memory.keep_quarantine("p v1", "it hung", 1_000);
        let again = FaultMemory::new(dir.path(), Path::new("/project"));
        assert_eq!(again.recall("p v1"), [("chat.message".to_owned(), kept)]);
        assert_eq!(again.recall("p v2"), []);
        assert_eq!(again.recall("p"), []);
        assert_eq!(again.quarantine("p v1", 2_000).as_deref(), Some("it hung"));
        assert_eq!(again.quarantine("p v1", 1_000 + QUARANTINE), None);
        let other = FaultMemory::new(dir.path(), Path::new("/other"));
        assert_eq!(other.recall("p v1"), []);
        again.keep("p v1", "chat.message", None);
        assert_eq!(memory.recall("p v1"), []);
        std::fs::write(&memory.0, "no json").unwrap();
        assert_eq!(memory.quarantine("p v1", 2_000), None);
        memory.keep_quarantine("p v1", "it hung again", 2_000);
        assert!(memory.quarantine("p v1", 2_000).is_some());
    }
}
