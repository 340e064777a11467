//! What the hook chains of a project run with: who is called, where that lives, what is counted.

use std::sync::{Arc, Mutex};

use outrigger_claude_hooks::Commands;
use outrigger_protocol::Millis;

use crate::access::settings::PluginSettings;
use crate::custom_points::links::Links;
use crate::hooks::breakers::Breakers;
use crate::hooks::perf::Perf;
use crate::registry::Registry;
use crate::supervisor::processes::Processes;

/// Shared by all chains of a project.
pub(crate) struct HookHost {
    pub(crate) registry: Arc<Registry>,
    pub(crate) processes: Arc<Processes>,
    pub(crate) settings: Arc<PluginSettings>,
    /// The clock of the records.
    pub(crate) now: fn() -> Millis,
    pub(crate) breakers: Breakers,
    pub(crate) perf: Mutex<Perf>,
    pub(crate) commands: Option<Commands>,
    /// The chains that plugins may reach points of their own from.
    pub(crate) links: Links,
}
