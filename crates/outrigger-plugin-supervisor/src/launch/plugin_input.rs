//! Input for loading plugins into a process.

use outrigger_protocol::rpc::{Facade, Initialize, PluginEntry};

use super::Launch;

impl Launch {
    /// Returns what a hosted plugin gets instead of the plugin input.
    fn facade(&self, index: usize) -> Option<Facade> {
        let (host, id) = self.registry.hosted_as(index)?;
        let routes = self.registry.with(index, |plugin| {
            let access = plugin.rules.access.as_ref();
            access.is_none_or(|access| access.client.as_ref().is_none_or(|it| !it.is_empty()))
        });
        Some(Facade {
            host,
            id,
            client: routes == Some(true),
        })
    }

    /// Returns the request that loads these plugins.
    pub(super) fn initialize(&self, batch: &[usize]) -> Initialize {
        let entry = |index: &usize| {
            let facade = self.facade(*index);
            self.registry.with(*index, |plugin| {
                plugin.resolved.as_ref().map(|resolved| PluginEntry {
                    id: plugin.id.clone(),
                    entry: resolved.entry.clone(),
                    from_path: resolved.from_path,
                    options: resolved.options.clone(),
                    tools: resolved.tools.clone(),
                    facade,
                })
            })?
        };
        Initialize {
            directory: self.directory.to_string_lossy().into_owned(),
            worktree: self.worktree.to_string_lossy().into_owned(),
            project: self.project.clone(),
            server_url: self.server_url.clone(),
            sdk: self
                .modules
                .as_ref()
                .map(|modules| modules.sdk.to_string_lossy().into_owned()),
            modules: self
                .modules
                .as_ref()
                .map(|modules| modules.root.to_string_lossy().into_owned()),
            plugins: batch.iter().filter_map(entry).collect(),
            ..Initialize::default()
        }
    }
}
