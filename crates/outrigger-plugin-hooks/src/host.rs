//! Shared state of the hook chains of a project: handlers, processes, counters.

use std::sync::{Arc, Mutex};

use outrigger_claude_hooks::Commands;
use outrigger_plugin_status::NoticeFn;
use outrigger_protocol::Millis;

use crate::breakers::HookBreakers;
use crate::changes::RedactFn;
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
    /// Settings for running plugins.
    pub settings: Arc<PluginSettings>,
    /// Clock of the records.
    pub now: fn() -> Millis,
    /// Breakers of hooks that keep timing out.
    pub breakers: HookBreakers,
    /// Cost of hooks since the start.
    pub perf: Mutex<Perf>,
    /// Command hooks; `None` if disabled.
    pub commands: Option<Commands>,
    /// Chains from which plugins may reach their custom points.
    pub links: Links,
    /// Reported answers that are rejected again and again.
    pub said: SaidOnce,
    /// Takes secrets out of what records keep of answers; `None`: they keep no values.
    pub redact: Option<RedactFn>,
    /// Receives notices of hooks that take long.
    pub notice: NoticeFn,
}
