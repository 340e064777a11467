//! Repeated calls need approval before they are made (permission `doom_loop`).

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::effect::Effect;
use outrigger_protocol::Millis;
use outrigger_protocol::id::PartId;
use outrigger_protocol::message::{NamedError, PartKind, ToolState};
use outrigger_protocol::tool::{ToolCall, ToolOutcome};
use outrigger_protocol::turn::EffectId;

use super::{OpenEffect, Turn};
use crate::digest::fnv1a;
use crate::repeats::Repeats;
use crate::sorted::SortedMap;

/// The calls of the turn, and the position of each running call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Loops {
    repeats: Repeats,
    positions: SortedMap<PartId, usize>,
}

impl Turn {
    /// Handles a call of the model: it runs, waits for the snapshot, or needs approval first.
    pub(super) fn make_call(&mut self, part: PartId, call: ToolCall, out: &mut Vec<Effect>) {
        // An invalid structured answer has a limit of its own.
        if self.is_answer(&call.tool) {
            self.run_call(part, call, out);
            return;
        }
        let print = fnv1a(format!("{}\0{}", call.tool, call.input).as_bytes());
        let (position, repeats) = self.loops.repeats.add(print);
        self.loops.positions.insert(part.clone(), position);
        if repeats && self.begin.asks_loops {
            let effect = self.open(OpenEffect::Loop(part, Box::new(call.clone())));
            out.push(Effect::AskLoop { effect, call });
            return;
        }
        self.run_call(part, call, out);
    }

    /// Runs a call, or holds it back until the snapshot exists.
    pub(super) fn run_call(&mut self, part: PartId, call: ToolCall, out: &mut Vec<Effect>) {
        if self.stopping() || self.holds(&part, &call) {
            return;
        }
        let effect = self.open(OpenEffect::Tool(part, Box::new(call.clone())));
        out.push(Effect::RunTool { effect, call });
    }

    /// Records the result of a call, from the state of its part.
    pub(super) fn note_result(&mut self, part: &PartId) {
        let Some(position) = self.loops.positions.remove(part) else {
            return;
        };
        let Some(PartKind::Tool(call)) = self.parts.get(part).map(|part| &part.kind) else {
            return;
        };
        let result = match &call.state {
            ToolState::Completed { output, .. } => fnv1a(output.as_bytes()),
            ToolState::Error { error, .. } => !fnv1a(error.as_bytes()),
            _ => return,
        };
        self.loops.repeats.answered(position, result);
    }

    /// Handles the answer about a loop. A refusal ends the turn: the model is stuck.
    pub(super) fn loop_answered(
        &mut self,
        at: Millis,
        effect: EffectId,
        refusal: Option<String>,
        out: &mut Vec<Effect>,
    ) {
        let Some(OpenEffect::Loop(part, call)) = self.open.get(&effect).cloned() else {
            return;
        };
        self.open.remove(&effect);
        let Some(refusal) = refusal else {
            self.run_call(part, *call, out);
            return;
        };
        let effect = self.open(OpenEffect::Tool(part, call.clone()));
        let outcome = ToolOutcome::Failed {
            input: call.input.clone(),
            code: "tool.loop".into(),
            message: refusal.clone(),
            metadata: None,
        };
        self.tool_done(at, effect, outcome, out);
        if self.stopping() {
            return;
        }
        let message = format!(
            "stopped: the model repeats the call of `{}` with the same arguments and the same results. {refusal}",
            call.tool
        );
        self.failed = Some(NamedError::new("DoomLoopError", message));
        if !self.open.is_empty() {
            out.push(Effect::Abort);
        }
    }
}
