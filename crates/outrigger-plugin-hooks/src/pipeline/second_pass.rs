//! Command hooks that are asked again, because the call changed after they answered.

use std::sync::Arc;

use outrigger_claude_hooks::{Rewrite, SecondPass};
use outrigger_kernel::hooks::HookPoint;
use outrigger_protocol::turn::HookPayload;
use serde_json::Value;

use super::{Drive, PipelineResult};

/// What command hooks were asked about so far, and their answers.
#[derive(Default)]
pub(super) struct SeenArguments {
    /// Each handler, with the arguments that it was shown.
    seen: Vec<(usize, Arc<Value>)>,
    rewrites: Vec<Rewrite>,
}

/// A call that changed after command hooks approved it.
pub(super) struct ChangedCall {
    /// The handlers that have not seen its current form.
    pub(super) handlers: Vec<usize>,
    pub(super) items: Vec<HookPayload>,
    pub(super) second_pass: SecondPass,
}

impl Drive<'_> {
    pub(super) fn note_asked(&mut self, handlers: &[usize], item: &HookPayload) {
        if self.point == HookPoint::ToolBeforeCall {
            let args = Arc::new(item.output.get("args").cloned().unwrap_or_default());
            let seen = handlers.iter().map(|it| (*it, Arc::clone(&args)));
            self.asked.seen.extend(seen);
        }
    }

    pub(super) fn note_rewrites(&mut self, rewrites: &[Rewrite]) {
        self.asked.rewrites.extend_from_slice(rewrites);
    }

    /// Returns the call if it changed after command hooks had answered. Once: see [`SecondPass`].
    pub(super) fn changed_call(&self) -> Option<ChangedCall> {
        if self.second_pass.is_some() || self.asked.seen.is_empty() {
            return None;
        }
        let args = self.items().first()?.output.get("args")?;
        let seen = self.asked.seen.iter();
        let unaware = seen.filter(|(_, seen)| **seen != *args);
        let handlers: Vec<usize> = unaware.map(|(handler, _)| *handler).collect();
        (!handlers.is_empty()).then(|| ChangedCall {
            handlers,
            items: self.informed(),
            second_pass: SecondPass::new(args.clone(), &self.asked.rewrites),
        })
    }
}

impl PipelineResult {
    /// Adds the result of the second pass.
    pub(super) fn then(mut self, second: Self) -> Self {
        self.block = self.block.or(second.block);
        self.stop = self.stop.or(second.stop);
        self.records.extend(second.records);
        self
    }
}
