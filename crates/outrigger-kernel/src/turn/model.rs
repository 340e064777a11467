//! Output of a model, signal by signal.

use alloc::vec::Vec;

use super::effect::Effect;
use outrigger_protocol::Millis;
use outrigger_protocol::message::{NamedError, PartKind};
use outrigger_protocol::turn::{EffectId, ModelSignal};

use super::tools::ModelCall;
use super::{OpenEffect, Turn};

impl Turn {
    pub(super) fn model(
        &mut self,
        at: Millis,
        effect: EffectId,
        signal: ModelSignal,
        out: &mut Vec<Effect>,
    ) {
        if self.open.get(&effect) != Some(&OpenEffect::Model) {
            return;
        }
        match signal {
            ModelSignal::Started => {
                let part = self.new_part(at, PartKind::StepStart(serde_json::Map::new()));
                out.push(self.keep_part(at, part));
            }
            ModelSignal::TextStart { index } => self.open_block(at, index, false, out),
            ModelSignal::ReasoningStart { index } => self.open_block(at, index, true, out),
            ModelSignal::TextEnd { index, text } => self.close_text(at, index, text, out),
            ModelSignal::ReasoningEnd {
                index,
                text,
                metadata,
            } => self.close_reasoning(at, index, text, metadata, out),
            ModelSignal::ToolStart { tool, .. } | ModelSignal::ToolEnd { tool, .. }
                if self.compacting.is_some() =>
            {
                self.refuse_call(&tool, out);
            }
            ModelSignal::ToolStart { call_id, tool } => self.tool_written(at, call_id, &tool, out),
            ModelSignal::ToolEnd {
                call_id,
                tool,
                raw,
                metadata,
            } => {
                let call = ModelCall {
                    call_id,
                    tool,
                    raw,
                    metadata,
                };
                self.tool_called(at, call, out);
            }
            ModelSignal::Finished { reason, usage } => {
                self.open.remove(&effect);
                self.finished = Some((reason, usage));
            }
            ModelSignal::Failed { error } => self.request_failed(effect, error, out),
        }
    }

    fn request_failed(&mut self, effect: EffectId, error: NamedError, out: &mut Vec<Effect>) {
        self.open.remove(&effect);
        if self.may_compact_after(&error) {
            self.overflowed = Some(error);
            return;
        }
        let error = self.summary_error(error);
        // The first cause is kept: a request that was stopped because of it reports only that it was
        // stopped.
        if !self.stopping() {
            self.failed = Some(error);
        }
        let mut open = self.open.values();
        if open.any(|open| matches!(open, OpenEffect::Tool(..))) {
            out.push(Effect::Abort);
        }
    }
}
