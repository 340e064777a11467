//! Declarations of plugins (B8), as long as they are not off.

use std::collections::HashMap;
use std::sync::Arc;

use outrigger_kernel::hooks::{HookPoint, OutputCheck};
use outrigger_plugin_package::ResolvedPlugin;
use outrigger_plugin_package::custom_points::Declarations;
use outrigger_plugin_status::Stage;
use outrigger_protocol::rpc::Instance;

use super::{Plugin, Registry, RegistryState};

/// Returns what a plugin declares in its manifest, under its id: if two claim the same id, the later one gets another
/// and declares nothing. Errors in a manifest were reported when it was read.
pub(super) fn declared(resolved: &ResolvedPlugin) -> Arc<Declarations> {
    let manifest = resolved.manifest.as_ref();
    let manifest = manifest.filter(|manifest| manifest.id == resolved.id);
    let own = manifest.and_then(|manifest| Declarations::of(manifest).ok());
    Arc::new(own.unwrap_or_default())
}

/// Removes providers of a plugin without a manifest: only with one does it have a process, and the key in it, to
/// itself.
pub(super) fn without_manifest(instances: &mut [Instance]) -> Vec<String> {
    instances.iter_mut().filter_map(|it| it.streams.take()).map(|it| {
        format!(
            "the provider {} is not offered: the plugin has no outrigger.plugin.toml that names it in `provides.providers`",
            it.id
        )
    }).collect()
}

impl Plugin {
    fn own(&self) -> Option<&Arc<Declarations>> {
        let off = matches!(self.stage, Stage::Failed | Stage::Off | Stage::Skipped);
        (!off && self.resolved.is_some()).then_some(&self.own)
    }
}

impl RegistryState {
    /// Returns the points of plugins by name.
    pub(super) fn declared(&self) -> HashMap<&'static str, HookPoint> {
        let own = self.plugins.iter().filter_map(Plugin::own);
        own.flat_map(|own| own.points.iter().map(|own| own.point))
            .map(|point| (point.name(), point))
            .collect()
    }
}

impl Registry {
    /// Returns the declarations of a plugin.
    pub fn own(&self, index: usize) -> Arc<Declarations> {
        let own = self.with(index, |plugin| plugin.own().cloned());
        own.flatten().unwrap_or_default()
    }

    /// Returns the plugin with a matching declaration.
    pub fn declares(&self, what: impl Fn(&Declarations) -> bool) -> Option<String> {
        let inner = self.read();
        let mut plugins = inner.plugins.iter();
        plugins
            .find(|plugin| plugin.own().is_some_and(|own| what(own)))
            .map(|plugin| plugin.id.clone())
    }

    /// Returns the declarations by plugin, in load order; plugins without any are skipped.
    pub fn all_own(&self) -> Vec<(String, Arc<Declarations>)> {
        let inner = self.read();
        let own = |plugin: &Plugin| {
            let own = plugin.own()?;
            let some = !own.points.is_empty() || !own.events.is_empty();
            some.then(|| (plugin.id.clone(), Arc::clone(own)))
        };
        inner.plugins.iter().filter_map(own).collect()
    }

    /// Returns the check for outputs at a point of a plugin, if its declaration has a schema.
    pub fn output_check(&self, point: HookPoint) -> Option<OutputCheck> {
        if !point.is_declared() {
            return None;
        }
        let inner = self.read();
        let mut own = inner.plugins.iter().filter_map(Plugin::own);
        own.find_map(|own| own.point(point.name()))?.check()
    }

    /// Returns whether a plugin has custom points or events.
    pub fn declares_any(&self, index: usize) -> bool {
        let any = self.with(index, |plugin| {
            plugin
                .own()
                .is_some_and(|own| !own.points.is_empty() || !own.events.is_empty())
        });
        any == Some(true)
    }
}
