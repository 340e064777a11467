//! Resuming a turn whose process was killed.
//!
//! The state is that of the last stored input. What was open then:
//! - a chain of hooks: continues after it, with the output it was given (a hook call is never repeated, A7); but the chains that
//!   prepare a model request run again with that request, because their result was lost with the process;
//! - the list of tools, the plan of a compaction, and a model request without a tool call so far: repeated, and streamed text is
//!   withdrawn;
//! - a model request with a tool call: treated as ended, since asking again could make the call twice;
//! - a call of a read-only tool: repeated; of any other: `interrupted, outcome unknown`.

use alloc::string::ToString;
use alloc::vec::Vec;

use super::effect::Effect;
use crate::hooks::HookPoint;
use outrigger_protocol::Millis;
use outrigger_protocol::event::Event;
use outrigger_protocol::message::{PartKind, ToolPart, ToolState};
use outrigger_protocol::model::Usage;
use outrigger_protocol::tool::{ToolCall, ToolOutcome};
use outrigger_protocol::turn::EffectId;

use serde_json::Value;

use super::inputs::Folded;
use super::tools::INVALID;
use super::{OpenEffect, Turn};

/// Text for the model and the user about a call with unknown outcome.
pub const INTERRUPTED: &str = "interrupted, outcome unknown: the program that ran this call was killed. \
    Check what it did before doing it again.";

impl Turn {
    pub(super) fn resume(&mut self, at: Millis, out: &mut Vec<Effect>) {
        let open: Vec<(EffectId, OpenEffect)> = self
            .open
            .iter()
            .map(|(id, what)| (*id, what.clone()))
            .collect();
        for (effect, what) in open {
            match what {
                OpenEffect::Hooks(
                    HookPoint::LlmBeforeMessages
                    | HookPoint::LlmBeforeSystem
                    | HookPoint::LlmBeforeParams
                    | HookPoint::LlmBeforeHeaders,
                ) => {
                    self.open.remove(&effect);
                    self.ask_again(out);
                }
                // The plan was in the memory of the dead process.
                OpenEffect::Hooks(HookPoint::CompactionBeforeStart) => {
                    self.open.remove(&effect);
                    self.take_compaction_hooks(None);
                    self.ask_again(out);
                }
                OpenEffect::Hooks(_) | OpenEffect::Text(_) => {
                    self.hook_done(at, effect, Folded::default(), None, out);
                }
                OpenEffect::Tools | OpenEffect::Plan => {
                    self.open.remove(&effect);
                    self.ask_again(out);
                }
                OpenEffect::Model => {
                    self.open.remove(&effect);
                    if self.calls_in_step == 0 {
                        self.ask_again(out);
                    } else {
                        self.finished = Some(("unknown".to_string(), Usage::default()));
                    }
                }
                OpenEffect::FilesBefore | OpenEffect::FilesAfter => self.resume_files(effect, out),
                OpenEffect::Loop(_, call) => out.push(Effect::AskLoop {
                    effect,
                    call: *call,
                }),
                OpenEffect::Tool(_, call) => self.resume_call(at, effect, *call, out),
            }
        }
    }

    fn ask_again(&mut self, out: &mut Vec<Effect>) {
        if self.stopping() {
            return;
        }
        self.blocks.clear();
        self.writing.clear();
        self.files.again();
        let parts = core::mem::take(&mut self.parts);
        for (part_id, part) in parts {
            // The model may use the same call id as before.
            if let PartKind::Tool(call) = &part.kind {
                self.used_calls.remove(&call.call_id);
            }
            out.push(Effect::Publish {
                event: Event::PartRemoved {
                    session_id: part.session_id,
                    message_id: part.message_id,
                    part_id,
                },
            });
        }
        if self.compacting.is_some() {
            self.prepare_compaction(out);
        } else {
            self.prepare(out);
        }
    }

    fn resume_call(&mut self, at: Millis, effect: EffectId, call: ToolCall, out: &mut Vec<Effect>) {
        // The tool that answers impossible calls does nothing else.
        let harmless = call.tool == INVALID
            || self
                .tools
                .iter()
                .any(|known| known.name == call.tool && known.read_only);
        if harmless && !self.stopping() {
            // The arguments are the model's, not the changed ones: the tool's hooks see the call again.
            out.push(Effect::RunTool { effect, call });
            return;
        }
        let outcome = ToolOutcome::Failed {
            input: self.input_of(effect).unwrap_or(call.input),
            code: "tool.interrupted".to_string(),
            message: INTERRUPTED.to_string(),
            metadata: None,
        };
        self.tool_done(at, effect, outcome, out);
    }

    /// Returns the arguments that a call runs with, once it runs.
    fn input_of(&self, effect: EffectId) -> Option<Value> {
        match self.part_of_call(effect)?.kind.clone() {
            PartKind::Tool(ToolPart {
                state: ToolState::Running { input, .. },
                ..
            }) => Some(input),
            _ => None,
        }
    }
}
