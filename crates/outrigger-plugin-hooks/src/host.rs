//! What the hook chains of a project run with: who is called, where that lives, what is counted.

use std::sync::{Arc, Mutex};

use outrigger_claude_hooks::Commands;
use outrigger_protocol::Millis;

use crate::breakers::Breakers;
use crate::custom_points::links::Links;
use crate::hook_audit::SaidOnce;
use crate::perf::Perf;
use outrigger_plugin_registry::Registry;
use outrigger_plugin_registry::access::settings::PluginSettings;
use outrigger_plugin_supervisor::processes::Processes;

/// Shared by all chains of a project.
pub struct HookHost {
    /// The list of plugins.
    pub registry: Arc<Registry>,
    /// Their processes.
    pub processes: Arc<Processes>,
    /// How plugins are run.
    pub settings: Arc<PluginSettings>,
    /// The clock of the records.
    pub now: fn() -> Millis,
    /// Which hooks are skipped because they keep timing out.
    pub breakers: Breakers,
    /// What hooks cost since the start.
    pub perf: Mutex<Perf>,
    /// Command hooks; none where they are switched off.
    pub commands: Option<Commands>,
    /// The chains that plugins may reach points of their own from.
    pub links: Links,
    /// What has been said of answers that are refused again and again.
    pub said: SaidOnce,
}
