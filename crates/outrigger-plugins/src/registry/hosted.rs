//! Plugins that another plugin hosts (C8): there with it, and gone with it.

use super::{Plugin, Registry};
use crate::error::PluginError;
use crate::status::Stage;

impl Registry {
    /// A plugin that another one hosts; it comes behind all that are there.
    pub(crate) fn host(&self, host: usize, mut plugin: Plugin) -> usize {
        plugin.host = Some(host);
        let index = {
            let mut inner = self.write();
            inner.plugins.push(plugin);
            inner.plugins.len() - 1
        };
        self.report(index);
        index
    }

    /// The plugin that hosts it, by index.
    pub(crate) fn host_of(&self, index: usize) -> Option<usize> {
        self.with(index, |plugin| plugin.host).flatten()
    }

    /// The plugins that it hosts, by index.
    pub(crate) fn hosted_by(&self, host: usize) -> Vec<usize> {
        let inner = self.read();
        let plugins = inner.plugins.iter().enumerate();
        let hosted = plugins.filter(|(_, plugin)| plugin.host == Some(host));
        hosted.map(|(index, _)| index).collect()
    }

    /// Its host's id, and what it is called below that one.
    pub(crate) fn hosted_as(&self, index: usize) -> Option<(String, String)> {
        let id = self.with(index, |plugin| {
            plugin.host.is_some().then(|| plugin.id.clone())
        })??;
        let (host, own) = id.split_once('>')?;
        Some((host.to_owned(), own.to_owned()))
    }

    /// What stands against a hosted plugin that is about to be called.
    pub(super) fn without_host(&self, index: usize) -> Option<PluginError> {
        let host = self.host_of(index)?;
        let gone =
            |host: &Plugin| matches!(host.stage, Stage::Failed | Stage::Off | Stage::Skipped);
        let host = self.with(host, |host| gone(host).then(|| host.id.clone()))??;
        let id = self.with(index, |plugin| plugin.id.clone())?;
        Some(PluginError::HostGone { id, host })
    }

    /// The host has ended: so do those that it hosts.
    pub(super) fn end_hosted(&self, host: usize, id: &str) {
        let hosted: Vec<(usize, String)> = {
            let inner = self.read();
            let plugins = inner.plugins.iter().enumerate();
            let hosted = plugins.filter(|(_, plugin)| {
                let over = matches!(plugin.stage, Stage::Failed | Stage::Off | Stage::Skipped);
                plugin.host == Some(host) && !over
            });
            hosted
                .map(|(index, plugin)| (index, plugin.id.clone()))
                .collect()
        };
        for (index, own) in hosted {
            let host = id.to_owned();
            self.off(index, &PluginError::HostGone { id: own, host });
        }
    }
}
