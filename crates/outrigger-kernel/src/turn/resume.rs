//! Going on with a turn whose process was killed.
//!
//! The state is that of the last stored input. What was open then:
//! - a chain of hooks: goes on behind itself, with the output it was given (a hook call is never repeated, A7); but the
//!   chains that prepare a model request run again with that request, because what they made was lost with the process;
//! - the list of tools, and a model request that led to no call yet: done again, and what had streamed is taken back;
//! - a model request that led to a call: taken as ended, since asking again could make the call twice;
//! - a call of a tool that changes nothing: made again; of any other: `interrupted, outcome unknown`.

use alloc::string::ToString;
use alloc::vec::Vec;

use outrigger_protocol::Millis;
use outrigger_protocol::event::Event;
use outrigger_protocol::id::PartId;
use outrigger_protocol::message::PartKind;
use outrigger_protocol::model::Usage;
use outrigger_protocol::tool::{ToolCall, ToolOutcome};
use outrigger_protocol::turn::{Effect, EffectId};

use super::{Open, Turn};

/// What the model and the user read of a call whose outcome nobody knows.
pub const INTERRUPTED: &str = "interrupted, outcome unknown: the program that ran this call was killed. \
    Check what it did before doing it again.";

impl Turn {
    pub(super) fn resume(&mut self, at: Millis, out: &mut Vec<Effect>) {
        let open: Vec<(EffectId, Open)> = self.open.iter().map(|(id, what)| (*id, what.clone())).collect();
        for (effect, what) in open {
            match what {
                Open::Hooks(point) if point.starts_with("llm.before_") => {
                    self.open.remove(&effect);
                    self.ask_again(at, out);
                }
                Open::Hooks(_) | Open::Text(_) => self.hook_done(at, effect, None, None, out),
                Open::Tools => {
                    self.open.remove(&effect);
                    self.ask_again(at, out);
                }
                Open::Model => {
                    self.open.remove(&effect);
                    if self.calls_in_step == 0 {
                        self.ask_again(at, out);
                    } else {
                        self.finished = Some(("unknown".to_string(), Usage::default()));
                    }
                }
                Open::Tool(part) => self.resume_call(at, effect, &part, out),
            }
        }
    }

    fn ask_again(&mut self, at: Millis, out: &mut Vec<Effect>) {
        if self.stopping() {
            return;
        }
        self.blocks.clear();
        self.writing.clear();
        let parts = core::mem::take(&mut self.parts);
        for (part_id, part) in parts {
            out.push(Effect::Publish {
                event: Event::PartRemoved { session_id: part.session_id, message_id: part.message_id, part_id },
            });
        }
        let _ = at;
        self.prepare(out);
    }

    fn resume_call(&mut self, at: Millis, effect: EffectId, id: &PartId, out: &mut Vec<Effect>) {
        let Some(PartKind::Tool(body)) = self.parts.get(id).map(|part| &part.kind) else { return };
        let read_only = self.tools.iter().any(|known| known.name == body.tool && known.read_only);
        let input = match &body.state {
            outrigger_protocol::message::ToolState::Pending { raw, .. } => {
                serde_json::from_str(raw).unwrap_or_else(|_| serde_json::json!({}))
            }
            state => state.input().clone(),
        };
        if read_only && !self.stopping() {
            let call = ToolCall {
                call_id: body.call_id.clone(),
                session_id: self.begin.session_id.clone(),
                message_id: self.message_id(),
                agent: self.begin.agent.clone(),
                tool: body.tool.clone(),
                input,
            };
            out.push(Effect::RunTool { effect, call });
            return;
        }
        let outcome = ToolOutcome::Failed {
            input,
            code: "tool.interrupted".to_string(),
            message: INTERRUPTED.to_string(),
            metadata: None,
        };
        self.tool_done(at, effect, outcome, out);
    }
}
