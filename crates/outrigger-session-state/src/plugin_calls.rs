//! Running tool calls of plugins, by number: a tool's questions belong to its call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use outrigger_stdx::sync::lock;
use outrigger_tools::ToolContext;
use serde_json::Value;

/// Maximum bytes of the stored progress of a call. Each report with a title is stored, and a call may make any number of them.
pub const MAX_PROGRESS_BYTES: usize = 8 * 1024 * 1024;

/// The calls of an agent's plugins.
#[derive(Default)]
pub struct PluginCalls(Mutex<HashMap<u64, RunningCall>>);

struct RunningCall {
    ctx: ToolContext,
    /// Bytes of progress so far.
    progress: usize,
}

impl PluginCalls {
    /// Registers a tool call under its number until the guard is dropped.
    pub fn enter(self: &Arc<Self>, call: u64, ctx: ToolContext) -> Entered {
        lock(&self.0).insert(call, RunningCall { ctx, progress: 0 });
        Entered {
            calls: Arc::clone(self),
            call,
        }
    }

    /// Returns the running call with that number.
    pub fn get(&self, number: u64) -> Option<ToolContext> {
        lock(&self.0).get(&number).map(|call| call.ctx.clone())
    }

    /// Passes a report of a call's progress on, unless the call has used up [`MAX_PROGRESS_BYTES`]. Only reports with a title are
    /// stored and counted.
    pub fn progress(&self, number: u64, title: Option<String>, metadata: Value) {
        let bytes = title
            .as_ref()
            .map_or(0, |title| title.len() + metadata.to_string().len());
        let mut calls = lock(&self.0);
        let Some(call) = calls.get_mut(&number) else {
            return;
        };
        let was_within = call.progress <= MAX_PROGRESS_BYTES;
        call.progress = call.progress.saturating_add(bytes);
        if bytes == 0 || call.progress <= MAX_PROGRESS_BYTES {
            let ctx = call.ctx.clone();
            drop(calls);
            ctx.progress(title, metadata);
        } else if was_within {
            tracing::warn!(
                "[plugins] the progress of a tool call is no longer stored: it has reported more than {} MiB",
                MAX_PROGRESS_BYTES >> 20
            );
        }
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
