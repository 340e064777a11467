//! Records of a chain: lines of the log, and for the audit hashes of what each handler was given and of what it answered
//! (C13).

use std::collections::BTreeSet;
use std::sync::Mutex;

use outrigger_kernel::guard::Rule;
use outrigger_kernel::hooks::HandlerRun;
use outrigger_plugin_status::DETAIL;
use outrigger_protocol::hook::HookAudit;
use outrigger_protocol::hook::{Decision, HookOutcome, HookRecord, OutcomeKind};
use outrigger_protocol::id::PluginId;
use outrigger_protocol::rpc::RanCalls;
use outrigger_protocol::turn::HookPayload;
use outrigger_stdx::sync::lock;

use crate::digest::{hash, hash_after, hash_items};

/// Audit state of a running chain.
#[derive(Default)]
pub(crate) struct ChainAudit {
    /// Hash of the payloads as the handlers so far left them; `None` before the first call.
    given: Option<String>,
    handlers: Vec<HookAudit>,
}

impl ChainAudit {
    pub(crate) fn new(handlers: usize) -> Self {
        Self {
            given: None,
            handlers: vec![HookAudit::default(); handlers],
        }
    }

    /// Returns the hash of the input for the next handlers. Intended to run while their process is working: a long history
    /// takes milliseconds.
    pub(crate) fn hash(&self, items: &[HookPayload]) -> String {
        self.given.clone().unwrap_or_else(|| hash_items(items))
    }

    /// Records that these handlers are called with this input.
    pub(crate) fn called(&mut self, handlers: &[usize], given: String, shared: bool) {
        for handler in handlers {
            if let Some(audit) = self.handlers.get_mut(*handler) {
                audit.claimed = shared;
            }
        }
        self.given = Some(given);
    }

    /// Records the input of a handler.
    pub(crate) fn reached(&mut self, handler: usize) {
        if let Some(audit) = self.handlers.get_mut(handler) {
            audit.input_hash.clone_from(&self.given);
        }
    }

    /// Records the answer of a handler and what the chain made of it.
    pub(crate) fn answered(
        &mut self,
        handler: usize,
        outcome: &HookOutcome,
        run: Option<&HandlerRun>,
    ) {
        self.reached(handler);
        let Some(audit) = self.handlers.get_mut(handler) else {
            return;
        };
        let answer = match outcome {
            HookOutcome::Block(block) => {
                audit.output_hash = Some(hash(block));
                return;
            }
            HookOutcome::Patch(patch) if !patch.is_empty() => hash(&(&patch.items, &patch.order)),
            _ => return,
        };
        if let Some(given) = &mut self.given
            && run.is_some_and(|run| run.decision == Decision::Patch)
        {
            *given = hash_after(given, &answer);
        }
        audit.output_hash = Some(answer);
    }

    /// Returns the audit record of a handler.
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

/// Target of `[plugin-perf]` lines, so that they can be logged alone (`OUTRIGGER_LOG=plugin=debug`, A12).
const PERF: &str = "plugin::perf";

/// Returns `event=H plugin=P payload_bytes=N way=W sent_bytes=N duration_ms=N cpu_ms=N outcome=O`; `way` and `sent_bytes` if
/// something was sent to a process, `cpu_ms` if known.
fn perf(record: &HookRecord) -> String {
    let mut line = format!(
        "event={} plugin={} payload_bytes={}",
        record.hook, record.plugin, record.payload_bytes
    );
    if let Some(carried) = &record.carried {
        line += &format!(" way={} sent_bytes={}", carried.way.name(), carried.bytes);
    }
    line += &format!(" duration_ms={:.3}", record.duration_ms);
    if let Some(cpu) = record.cpu_ms {
        line += &format!(" cpu_ms={cpu:.0}");
    }
    line += &format!(" outcome={}", record.outcome);
    line
}

/// Logs the runs of a background hook.
pub fn log_observed(calls: &RanCalls) {
    if !tracing::enabled!(target: PERF, tracing::Level::DEBUG) {
        return;
    }
    let RanCalls { plugin, hook, .. } = calls;
    for ms in &calls.ms {
        tracing::debug!(target: PERF, "[plugin-perf] event={hook} plugin={plugin} payload_bytes={} duration_ms={ms:.3} outcome=ok", calls.bytes);
    }
}

/// Attempts that a plugin repeats with every request, reported once.
#[derive(Default)]
pub struct SaidOnce(Mutex<BTreeSet<(PluginId, String)>>);

impl SaidOnce {
    /// Logs that a plugin tried to change who pays for a model request.
    fn log(&self, record: &HookRecord) {
        let message = record.message.clone().unwrap_or_default();
        let (plugin, hook) = (&record.plugin, &record.hook);
        if lock(&self.0).insert((plugin.clone(), message.clone())) {
            tracing::warn!("plugin {plugin}: its answer was refused at {hook}: {message}");
        }
    }
}

/// Logs a handler's run. `heals`: a process that is unresponsive or has exited is restarted, which is logged as a separate
/// warning with the reason.
pub(crate) fn log(record: &HookRecord, heals: bool, once: &SaidOnce) {
    if tracing::enabled!(target: PERF, tracing::Level::DEBUG) {
        tracing::debug!(target: PERF, "[plugin-perf] {}", perf(record));
    }
    if record.audit.refused == Some(Rule::Account.name()) {
        return once.log(record);
    }
    if matches!(
        record.decision,
        Decision::FailedOpen | Decision::FailedClosed | Decision::Refused
    ) {
        let message = record.message.as_deref().unwrap_or_default();
        let session = record
            .session
            .as_ref()
            .map_or_else(String::new, |id| format!(" in session {}", id.0));
        // It answered, but the answer was rejected.
        let what = match (record.decision, record.outcome) {
            (Decision::Refused, OutcomeKind::Ok) => "its answer was refused",
            (_, outcome) => outcome.name(),
        };
        let (plugin, hook) = (&record.plugin, &record.hook);
        match record.outcome {
            OutcomeKind::Timeout | OutcomeKind::Lost if heals => tracing::warn!(
                target: DETAIL,
                "plugin {plugin}: {what} at {hook}{session}: {message}"
            ),
            _ => tracing::warn!("plugin {plugin}: {what} at {hook}{session}: {message}"),
        }
    }
}
