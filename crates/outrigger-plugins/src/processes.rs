//! The plugin processes of a project, by key. Keys are never used twice: a plugin that gets a process of its own has a new
//! one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::charges::Charges;
use crate::group::Group;
use crate::watch::Readings;

/// All of them.
#[derive(Default)]
pub(crate) struct Processes {
    groups: RwLock<BTreeMap<u64, Arc<Group>>>,
    made: AtomicU64,
    /// What they use.
    pub(crate) readings: Readings,
    /// Whose that was.
    pub(crate) charges: Charges,
}

impl Processes {
    /// A key that no process has had.
    pub(crate) fn key(&self) -> u64 {
        self.made.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn get(&self, key: u64) -> Option<Arc<Group>> {
        let groups = self.groups.read().unwrap_or_else(PoisonError::into_inner);
        groups.get(&key).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Group>> {
        let groups = self.groups.read().unwrap_or_else(PoisonError::into_inner);
        groups.values().cloned().collect()
    }

    /// From now on it is known: calls can find it.
    pub(crate) fn add(&self, group: &Arc<Group>) {
        self.groups
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(group.key, Arc::clone(group));
    }

    /// It is over, and nothing goes there any more.
    pub(crate) fn remove(&self, key: u64) {
        self.groups
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&key);
        self.readings.forget(key);
        self.charges.forget(key);
    }
}
