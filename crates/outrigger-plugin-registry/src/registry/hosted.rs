//! Hosted plugins (C8): they exist only as long as their host.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::{Plugin, Registry};
use crate::error::PluginError;

/// Time that an ended hosted plugin may take to dispose of its resources.
const DISPOSE: Duration = Duration::from_secs(5);

/// The processes of plugins, as far as the list of plugins needs them.
pub trait ProcessList: Send + Sync {
    /// Returns the generation of a process; `None` if there is none with this key.
    fn generation(&self, group: u64) -> Option<u64>;
    /// Ends a process after its plugins have disposed of their resources, by force at the deadline. Does not wait for
    /// it.
    fn end(self: Arc<Self>, group: u64, deadline: Duration);
}

impl Registry {
    /// Appends a plugin that another one hosts.
    pub fn host(&self, host: usize, mut plugin: Plugin) -> usize {
        plugin.host = Some(host);
        self.push(plugin)
    }

    /// Appends a plugin.
    pub fn push(&self, plugin: Plugin) -> usize {
        let index = {
            let mut inner = self.write();
            inner.plugins.push(plugin);
            inner.plugins.len() - 1
        };
        self.report(index);
        self.tell_state(index);
        index
    }

    /// Returns the index of its host.
    pub fn host_of(&self, index: usize) -> Option<usize> {
        self.with(index, |plugin| plugin.host).flatten()
    }

    /// Returns the indexes of the plugins that it hosts.
    pub fn hosted_by(&self, host: usize) -> Vec<usize> {
        let inner = self.read();
        inner
            .plugins
            .iter()
            .enumerate()
            .filter(|(_, plugin)| plugin.host == Some(host))
            .map(|(index, _)| index)
            .collect()
    }

    /// Returns its host's id, and its name below that one.
    pub fn hosted_as(&self, index: usize) -> Option<(String, String)> {
        let id = self.with(index, |plugin| {
            plugin.host.is_some().then(|| plugin.id.clone())
        })??;
        let (host, own) = id.split_once('>')?;
        Some((host.to_owned(), own.to_owned()))
    }

    /// Returns why a hosted plugin cannot be called.
    fn without_host(&self, index: usize) -> Option<PluginError> {
        let host = self.host_of(index)?;
        let host = self.with(host, |host| host.has_ended().then(|| host.id.clone()))??;
        let id = self.with(index, |plugin| plugin.id.clone())?;
        Some(PluginError::HostGone { id, host })
    }

    /// Switches off a hosted plugin whose host has ended; returns whether it did.
    pub(super) fn ends_with_host(&self, index: usize) -> bool {
        let gone = self.without_host(index);
        if let Some(error) = &gone {
            self.off(index, error);
        }
        gone.is_some()
    }

    /// Ends the plugins hosted by one that has ended.
    pub(super) fn end_hosted(&self, host: usize, id: &str) {
        let hosted: Vec<(usize, String)> = {
            let inner = self.read();
            inner
                .plugins
                .iter()
                .enumerate()
                .filter(|(_, plugin)| plugin.host == Some(host) && !plugin.has_ended())
                .map(|(index, plugin)| (index, plugin.id.clone()))
                .collect()
        };
        for (index, own) in hosted {
            let host = id.to_owned();
            self.off(index, &PluginError::HostGone { id: own, host });
        }
    }

    /// Sets the processes, once they exist.
    pub fn live_in(&self, processes: Weak<dyn ProcessList>) {
        // Set once, at the start.
        let _ = self.processes.set(processes);
    }

    /// Ends the process of a hosted plugin that is no longer called; it has the process to itself.
    pub(super) fn end_process(&self, index: usize) {
        let group = self.with(index, |plugin| plugin.host.and(plugin.group));
        let processes = self.processes.get().and_then(Weak::upgrade);
        if let (Some(Some(group)), Some(processes)) = (group, processes) {
            processes.end(group, DISPOSE);
        }
    }
}
