//! The plugin processes of a project, by key. Keys are never reused: a plugin that gets its own process has a new one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use outrigger_stdx::sync;
use tokio::runtime::Handle;

use crate::group::{Group, Live, ProcessTable};
use crate::watch::cpu_accounting::Charges;
use crate::watch::resource_limits::Readings;
use outrigger_plugin_registry::{ProcessList, Registry};

/// All processes.
#[derive(Default)]
pub struct Processes {
    groups: RwLock<BTreeMap<u64, Arc<Group>>>,
    made: AtomicU64,
    /// Their resource use.
    pub readings: Readings,
    /// CPU time by plugin.
    pub charges: Charges,
}

impl Processes {
    /// Returns an unused key.
    pub fn key(&self) -> u64 {
        self.made.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the process of a key.
    pub fn get(&self, key: u64) -> Option<Arc<Group>> {
        let groups = sync::read(&self.groups);
        groups.get(&key).cloned()
    }

    /// Returns all processes, by key.
    pub fn all(&self) -> Vec<Arc<Group>> {
        let groups = sync::read(&self.groups);
        groups.values().cloned().collect()
    }

    /// The process that a plugin lives in now; waits for a restart that is under way. A plugin that is given a process
    /// of its own meanwhile is found there.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn live(
        &self,
        registry: &Registry,
        plugin: usize,
    ) -> Result<(Arc<Group>, Arc<Live>), String> {
        loop {
            let key = || registry.with(plugin, |plugin| plugin.group).flatten();
            let Some(group) = key().and_then(|key| self.get(key)) else {
                return Err("its plugin is not loaded".to_owned());
            };
            let live = group.live().await;
            // It moves at most once, so this terminates.
            if key() == Some(group.key) {
                return Ok((group, live?));
            }
        }
    }

    /// Registers a process, so that calls can find it.
    pub fn add(&self, group: &Arc<Group>) {
        sync::write(&self.groups).insert(group.key, Arc::clone(group));
    }

    /// Removes an ended process.
    pub fn remove(&self, key: u64) {
        sync::write(&self.groups).remove(&key);
        self.readings.forget(key);
        self.charges.forget(key);
    }
}

impl ProcessTable for Processes {
    fn key(&self) -> u64 {
        Self::key(self)
    }

    fn add(&self, group: &Arc<Group>) {
        Self::add(self, group);
    }

    fn begins(&self, key: u64, live: &Live) {
        self.charges.begin(key, live);
    }
}

impl ProcessList for Processes {
    fn generation(&self, group: u64) -> Option<u64> {
        Some(self.get(group)?.current().1)
    }

    fn end(self: Arc<Self>, group: u64, deadline: Duration) {
        if let (Some(group), Ok(runtime)) = (self.get(group), Handle::try_current()) {
            runtime.spawn(async move {
                group.close(deadline).await;
                self.remove(group.key);
            });
        }
    }
}
