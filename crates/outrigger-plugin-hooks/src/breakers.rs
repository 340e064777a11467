//! The breakers of plugins' hooks: one for each hook of each plugin (A8).

use std::collections::BTreeMap;
use std::sync::Arc;

use outrigger_kernel::hooks::HookPoint;
use outrigger_plugin_status::{BreakerKey, BreakerMemory, Breakers};

/// Breakers of all hooks.
pub type HookBreakers = Breakers<HookKey>;

/// A hook of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HookKey {
    /// Index of the plugin.
    pub plugin: usize,
    /// Name of the point, under which its breaker is stored.
    point: &'static str,
    /// Name of the hook, as plugins and lists have it.
    hook: &'static str,
}

impl HookKey {
    /// Makes the key of a plugin's hook.
    #[must_use]
    pub fn new(plugin: usize, point: HookPoint) -> Self {
        Self {
            plugin,
            point: point.name(),
            hook: point.hook(),
        }
    }
}

impl BreakerKey for HookKey {
    type Callee = usize;

    fn callee(&self) -> usize {
        self.plugin
    }

    fn place(&self) -> &'static str {
        self.hook
    }

    fn stored_place(&self) -> &'static str {
        self.point
    }
}

/// Restores the breakers that earlier processes stored for plugins, by the name of each plugin's version, and stores them from now on.
pub fn remember(
    breakers: &HookBreakers,
    memory: Arc<dyn BreakerMemory>,
    names: BTreeMap<usize, String>,
) {
    for (plugin, name) in &names {
        breakers.recall(memory.as_ref(), name, |place| {
            HookPoint::parse(place).map(|point| HookKey::new(*plugin, point))
        });
    }
    breakers.store_in(memory, move |key| names.get(&key.plugin).cloned());
}
