//! Plugins and tool files of the layers: the names in each, and which of them are loaded.

use std::path::Path;

use serde_json::Value;

use super::layers;
use super::loader::{Extent, Loader};
use crate::opencode::plugin_list::{
    self, PluginScope, PluginSource, PluginSpec, SkipReason, SkippedPlugin,
};
use crate::{ConfigProblem, TrustRequest};

/// Plugins to load, and those that are skipped.
pub(crate) struct PluginSelection {
    pub(crate) plugins: Vec<PluginSpec>,
    /// Files of single tools.
    pub(crate) tool_files: Vec<PluginSpec>,
    pub(crate) skipped: Vec<SkippedPlugin>,
}

impl Loader<'_> {
    pub(super) fn discovered(
        &mut self,
        dir: &Path,
        names: [&str; 2],
        source: PluginSource,
    ) -> Vec<PluginSpec> {
        let scope = self.scope(dir);
        let file = |spec| PluginSpec {
            spec,
            options: None,
            declared_in: dir.into(),
            source,
            scope,
        };
        let found = plugin_list::discover(dir, names);
        if self.is_project {
            let asked =
                |spec: &String| TrustRequest::new(dir, names[0], &Value::String(spec.clone()));
            self.asks.extend(found.iter().map(asked));
            if self.extent == Extent::Harmless {
                return Vec::new();
            }
        }
        found.into_iter().map(file).collect()
    }

    pub(super) fn take_plugins(
        &self,
        value: &mut Value,
        declared_in: &Path,
        folder: &Path,
    ) -> Option<Vec<PluginSpec>> {
        let Some(Value::Array(list)) = value.as_object_mut()?.shift_remove("plugin") else {
            return None;
        };
        let scope = self.scope(declared_in);
        let specs = list.into_iter().filter_map(|entry| {
            let (spec, options) = match entry {
                Value::String(spec) => (spec, None),
                Value::Array(pair) => (pair.first()?.as_str()?.to_owned(), pair.get(1).cloned()),
                _ => return None,
            };
            let spec = plugin_list::resolve(&spec, folder, &self.options.home);
            Some(PluginSpec {
                spec,
                options,
                declared_in: declared_in.into(),
                source: PluginSource::Config,
                scope,
            })
        });
        Some(specs.collect())
    }

    pub(super) fn add_plugins(&mut self, plugins: Vec<PluginSpec>) {
        self.plugins.extend(plugins);
        self.lost
            .extend(plugin_list::deduplicate(&mut self.plugins));
    }

    /// Takes the plugins that the files name, and selects what to load.
    pub(crate) fn take_selection(&mut self) -> PluginSelection {
        let mut plugins = std::mem::take(&mut self.plugins);
        let mut tools = std::mem::take(&mut self.tool_files);
        let replaced = self.replaced.drain(..).map(|plugin| SkippedPlugin {
            plugin,
            reason: SkipReason::Replaced,
        });
        let mut skipped: Vec<SkippedPlugin> = replaced.collect();
        for plugin in self.lost.drain(..) {
            let key = plugin.key();
            if let Some(winner) = plugins.iter().find(|other| other.key() == key) {
                let reason = SkipReason::Overridden {
                    spec: winner.spec.clone(),
                    declared_in: winner.declared_in.clone(),
                };
                skipped.push(SkippedPlugin { plugin, reason });
            }
        }
        if self.options.pure || layers::switch(self.options, "OPENCODE_PURE") {
            let all = tools.drain(..).chain(plugins.drain(..));
            skipped.extend(all.map(|plugin| SkippedPlugin {
                plugin,
                reason: SkipReason::Pure,
            }));
        }
        let left_out = self.left_out();
        for list in [&mut tools, &mut plugins] {
            let out = list.extract_if(.., |plugin| left_out.contains(&plugin.key()));
            skipped.extend(out.map(|plugin| SkippedPlugin {
                plugin,
                reason: SkipReason::LeftOut,
            }));
        }
        PluginSelection {
            plugins,
            tool_files: tools,
            skipped,
        }
    }

    /// Returns what `plugin bisect` excludes from this run.
    fn left_out(&mut self) -> Vec<String> {
        let Some(text) = self.options.env.get(plugin_list::LEFT_OUT) else {
            return Vec::new();
        };
        serde_json::from_str(text).unwrap_or_else(|_| {
            self.problems.push(ConfigProblem {
                file: plugin_list::LEFT_OUT.into(),
                pointer: None,
                message:
                    "ignored: it is not a JSON array of strings (`outrigger plugin bisect` sets it)"
                        .into(),
            });
            Vec::new()
        })
    }

    fn scope(&self, declared_in: &Path) -> PluginScope {
        let worktree = &self.options.worktree;
        let local = declared_in == Path::new("OPENCODE_CONFIG_CONTENT")
            || declared_in.starts_with(&self.options.directory)
            || (worktree != Path::new("/") && declared_in.starts_with(worktree));
        if local {
            PluginScope::Local
        } else {
            PluginScope::Global
        }
    }
}
