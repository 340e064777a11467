//! Running tool calls of plugins, by number: a tool's questions belong to its call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use outrigger_files::sync::lock;
use outrigger_tools::ToolContext;

/// The calls of an agent's plugins.
#[derive(Default)]
pub struct PluginCalls(Mutex<HashMap<u64, ToolContext>>);

impl PluginCalls {
    /// Registers a tool call under its number until the guard is dropped.
    pub fn enter(self: &Arc<Self>, call: u64, ctx: ToolContext) -> Entered {
        lock(&self.0).insert(call, ctx);
        Entered {
            calls: Arc::clone(self),
            call,
        }
    }

    /// Returns the running call with that number.
    pub fn get(&self, number: u64) -> Option<ToolContext> {
        lock(&self.0).get(&number).cloned()
    }
}

/// A running tool call of a plugin.
pub struct Entered {
    calls: Arc<PluginCalls>,
    call: u64,
}

impl Drop for Entered {
    fn drop(&mut self) {
        lock(&self.calls.0).remove(&self.call);
    }
}
