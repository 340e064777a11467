//! Command hooks that are asked again, since the call is another one than they answered about.

use std::sync::Arc;

use outrigger_claude_hooks::{Again, Rewrite};
use outrigger_kernel::hooks::HookPoint;
use outrigger_protocol::turn::HookPayload;
use serde_json::Value;

use super::{Drive, PipelineResult};

/// What command hooks were asked about so far, and what they answered.
#[derive(Default)]
pub(super) struct Asked {
    /// Each handler, with the arguments that it was shown.
    seen: Vec<(usize, Arc<Value>)>,
    rewrites: Vec<Rewrite>,
}

/// A call that command hooks let pass as another one.
pub(super) struct ChangedCall {
    /// The handlers that have not seen it as it is.
    pub(super) handlers: Vec<usize>,
    pub(super) items: Vec<HookPayload>,
    pub(super) again: Again,
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

    /// The call, where somebody changed it after command hooks had answered about it. Once: see [`Again`].
    pub(super) fn changed_call(&self) -> Option<ChangedCall> {
        if self.again.is_some() || self.asked.seen.is_empty() {
            return None;
        }
        let args = self.items().first()?.output.get("args")?;
        let seen = self.asked.seen.iter();
        let unaware = seen.filter(|(_, seen)| **seen != *args);
        let handlers: Vec<usize> = unaware.map(|(handler, _)| *handler).collect();
        (!handlers.is_empty()).then(|| ChangedCall {
            handlers,
            items: self.informed(),
            again: Again::new(args.clone(), &self.asked.rewrites),
        })
    }
}

impl PipelineResult {
    /// With what was said when it was asked again.
    pub(super) fn then(mut self, again: Self) -> Self {
        self.block = self.block.or(again.block);
        self.stop = self.stop.or(again.stop);
        self.records.extend(again.records);
        self
    }
}
