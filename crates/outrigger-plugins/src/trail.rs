//! What is written down of a chain: lines of the log, and for the audit hashes of what each handler was given and of what
//! it answered (C13).

use outrigger_kernel::hooks::HandlerRun;
use outrigger_protocol::audit::HookAudit;
use outrigger_protocol::hook::{Decision, HookRecord};
use outrigger_protocol::rpc::HookResult;
use outrigger_protocol::turn::HookPayload;

use crate::digest::{hash, hash_after, hash_items};

/// The audit's side of a chain under way.
#[derive(Default)]
pub(crate) struct Trail {
    /// Hash of the payloads as the handlers so far left them; none before the first call.
    given: Option<String>,
    handlers: Vec<HookAudit>,
}

impl Trail {
    pub(crate) fn new(handlers: usize) -> Self {
        Self {
            given: None,
            handlers: vec![HookAudit::default(); handlers],
        }
    }

    /// The hash of what the next handlers are given. Meant to run while their process is at work: of a long history it
    /// takes milliseconds.
    pub(crate) fn hash(&self, items: &[HookPayload]) -> String {
        self.given.clone().unwrap_or_else(|| hash_items(items))
    }

    /// These handlers are called with that.
    pub(crate) fn called(&mut self, handlers: &[usize], given: String, shared: bool) {
        for handler in handlers {
            if let Some(audit) = self.handlers.get_mut(*handler) {
                audit.claimed = shared;
            }
        }
        self.given = Some(given);
    }

    /// What a handler was given is known now.
    pub(crate) fn reached(&mut self, handler: usize) {
        if let Some(audit) = self.handlers.get_mut(handler) {
            audit.input_hash.clone_from(&self.given);
        }
    }

    /// A handler has answered, and the chain has made this of it.
    pub(crate) fn answered(
        &mut self,
        handler: usize,
        result: &HookResult,
        run: Option<&HandlerRun>,
    ) {
        self.reached(handler);
        let Some(audit) = self.handlers.get_mut(handler) else {
            return;
        };
        let changes = result.items.iter().any(|item| !item.is_empty()) || result.order.is_some();
        if !changes {
            return;
        }
        let answer = hash(&(&result.items, &result.order));
        if let Some(given) = &mut self.given
            && run.is_some_and(|run| run.decision == Decision::Patch)
        {
            *given = hash_after(given, &answer);
        }
        audit.output_hash = Some(answer);
    }

    /// What is written down of a handler.
    pub(crate) fn of(&mut self, run: &HandlerRun) -> HookAudit {
        let mut audit = self
            .handlers
            .get_mut(run.handler)
            .map(std::mem::take)
            .unwrap_or_default();
        audit.refused = run.refused.map(outrigger_kernel::guard::Rule::name);
        audit
    }
}

/// A handler's run in the log of the program.
pub(crate) fn log(record: &HookRecord) {
    tracing::debug!(
        "[plugin-perf] event={} plugin={} payload_bytes={} duration_ms={:.3} outcome={}",
        record.hook,
        record.plugin,
        record.payload_bytes,
        record.duration_ms,
        record.outcome
    );
    if matches!(
        record.decision,
        Decision::FailedOpen | Decision::FailedClosed | Decision::Refused
    ) {
        let message = record.message.as_deref().unwrap_or_default();
        tracing::warn!(
            "plugin {}: {} at {}: {message}",
            record.plugin,
            record.outcome,
            record.hook
        );
    }
}
