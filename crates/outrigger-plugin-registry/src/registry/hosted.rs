//! Plugins that another plugin hosts (C8): there with it, and gone with it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::{Plugin, Registry};
use crate::error::PluginError;

/// How long a hosted plugin that has ended may take to dispose of what it holds.
const DISPOSE: Duration = Duration::from_secs(5);

/// The processes of plugins, as far as the list of plugins needs them.
pub trait ProcessList: Send + Sync {
    /// The generation of a process; `None` where there is none of this key.
    fn generation(&self, group: u64) -> Option<u64>;
    /// Ends a process when its plugins have disposed of what they hold, at the deadline by force. Does not wait for it.
    fn end(self: Arc<Self>, group: u64, deadline: Duration);
}

impl Registry {
    /// A plugin that another one hosts; it comes after all that are there.
    pub fn host(&self, host: usize, mut plugin: Plugin) -> usize {
        plugin.host = Some(host);
        self.push(plugin)
    }

    /// A plugin that comes after all that are there.
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

    /// The plugin that hosts it, by index.
    pub fn host_of(&self, index: usize) -> Option<usize> {
        self.with(index, |plugin| plugin.host).flatten()
    }

    /// The plugins that it hosts, by index.
    pub fn hosted_by(&self, host: usize) -> Vec<usize> {
        let inner = self.read();
        let plugins = inner.plugins.iter().enumerate();
        let hosted = plugins.filter(|(_, plugin)| plugin.host == Some(host));
        hosted.map(|(index, _)| index).collect()
    }

    /// Its host's id, and what it is called below that one.
    pub fn hosted_as(&self, index: usize) -> Option<(String, String)> {
        let id = self.with(index, |plugin| {
            plugin.host.is_some().then(|| plugin.id.clone())
        })??;
        let (host, own) = id.split_once('>')?;
        Some((host.to_owned(), own.to_owned()))
    }

    /// What stands against a hosted plugin that is about to be called.
    pub(super) fn without_host(&self, index: usize) -> Option<PluginError> {
        let host = self.host_of(index)?;
        let host = self.with(host, |host| host.has_ended().then(|| host.id.clone()))??;
        let id = self.with(index, |plugin| plugin.id.clone())?;
        Some(PluginError::HostGone { id, host })
    }

    /// The host has ended: so do those that it hosts.
    pub(super) fn end_hosted(&self, host: usize, id: &str) {
        let hosted: Vec<(usize, String)> = {
            let inner = self.read();
            let plugins = inner.plugins.iter().enumerate();
            let hosted =
                plugins.filter(|(_, plugin)| plugin.host == Some(host) && !plugin.has_ended());
            hosted
                .map(|(index, plugin)| (index, plugin.id.clone()))
                .collect()
        };
        for (index, own) in hosted {
            let host = id.to_owned();
            self.off(index, &PluginError::HostGone { id: own, host });
        }
    }

    /// Where the processes are, once there are any.
    pub fn live_in(&self, processes: Weak<dyn ProcessList>) {
        // Said once, at the start.
        let _ = self.processes.set(processes);
    }

    /// A hosted plugin that is called no more does not run on in its process, which is its alone.
    pub(super) fn end_process(&self, index: usize) {
        let group = self.with(index, |plugin| plugin.host.and(plugin.group));
        let processes = self.processes.get().and_then(Weak::upgrade);
        if let (Some(Some(group)), Some(processes)) = (group, processes) {
            processes.end(group, DISPOSE);
        }
    }
}
