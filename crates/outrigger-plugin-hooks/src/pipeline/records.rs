//! Records of a completed chain.

use outrigger_kernel::hooks::{Chain, HandlerRun};
use outrigger_protocol::hook::{Block, Decision, HookRecord};
use outrigger_protocol::id::PluginId;
use outrigger_stdx::sync::lock;

use super::{Drive, PipelineResult};
use crate::hook_audit::log;

impl Drive<'_> {
    pub(super) fn finish(mut self) -> PipelineResult {
        let folded = self.chain.take().map(Chain::finish);
        let Some(folded) = folded else {
            return PipelineResult::default();
        };
        let block = self.named(folded.block, &folded.runs);
        let mut audit = std::mem::take(&mut self.audit);
        let mut values = std::mem::take(&mut self.values);
        let records = folded.runs.iter().filter_map(|run| {
            let bound = self.bound.get(run.handler)?;
            let sent = self.sent.get(run.handler).copied().unwrap_or_default();
            // Nothing of it had to be asked again.
            if self.second_pass.is_some() && sent.bytes == 0 && run.decision == Decision::Continue {
                return None;
            }
            let mut record = HookRecord {
                point: self.point.name().to_owned(),
                hook: self.point.hook().to_owned(),
                plugin: PluginId(bound.id.clone()),
                session: self.context.session.clone(),
                turn: self.context.turn.clone(),
                outcome: run.outcome,
                decision: run.decision,
                payload_bytes: sent.bytes,
                carried: sent.carried,
                cpu_ms: sent.cpu_ms,
                duration_ms: run.ms,
                changed: run.changed.clone(),
                values: values.remove(&run.handler).unwrap_or_default(),
                message: run.message.as_deref().map(brief),
                at: if sent.at == 0 {
                    (self.host.now)()
                } else {
                    sent.at
                },
                audit: audit.of(run),
            };
            record.audit.step.clone_from(&self.context.step);
            let heals = self.host.settings.self_heal && !bound.guards();
            log(&record, heals, &self.host.said);
            Some(record)
        });
        let records: Vec<HookRecord> = records.collect();
        {
            let mut perf = lock(&self.host.perf);
            records.iter().for_each(|record| perf.add(record));
        }
        PipelineResult {
            outputs: folded.outputs,
            history: folded.history,
            block,
            records,
            stop: self.stop.take(),
        }
    }

    /// Notes in a refusal which plugin refused.
    fn named(&self, block: Option<Block>, runs: &[HandlerRun]) -> Option<Block> {
        let mut block = block?;
        let refuses =
            |it: &&HandlerRun| matches!(it.decision, Decision::Block | Decision::FailedClosed);
        let bound = runs
            .iter()
            .rfind(refuses)
            .and_then(|it| self.bound.get(it.handler));
        block.plugin = bound.map(|it| it.id.clone());
        Some(block)
    }
}

/// Maximum size in bytes of a record's text: it is stored and logged with each call.
const MESSAGE: usize = 4096;

fn brief(message: &str) -> String {
    let end = outrigger_stdx::text::floor_char_boundary(message, MESSAGE);
    message.get(..end).unwrap_or(message).to_owned()
}
