//! The summary: its message, what follows it, and the model's text for it.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use outrigger_protocol::compaction::Replay;
use outrigger_protocol::event::Event;
use outrigger_protocol::message::{
    AssistantMessage, MessageTime, ModelRef, NamedError, PartKind, PartTime, TextPart, UserMessage,
};
use outrigger_protocol::model::Prices;
use outrigger_protocol::session::SessionStatus;
use outrigger_protocol::{Millis, Object};
use serde_json::{Value, json};

use super::{AGENT, Compaction, OVERFLOW};
use crate::hooks::HookPoint;
use crate::hooks::points::compaction::after_finish;
use crate::turn::effect::Effect;
use crate::turn::{Turn, loops};

/// Instruction for the model after an automatic summary.
const GO_ON: &str = "Go on with what is still to be done. If nothing is left, or if it is not clear how to go on, stop \
    and say so.";
/// Its prefix if a request was refused as too long.
const TOO_LARGE: &str = "The last request was larger than the model takes, so what came before was summarised, and \
    images and documents were omitted. If the user asked about one of them, say that it was too large and propose \
    smaller or fewer files.\n\n";

impl Turn {
    /// Opens the message of the summary, once: a repeated request writes into the same one.
    pub(in crate::turn) fn open_summary(&mut self, at: Millis, out: &mut Vec<Effect>) {
        if self.message.is_none() {
            let model = self.step_model().clone();
            let message = AssistantMessage {
                summary: Some(true),
                ..self.new_message(at, AGENT, &model)
            };
            self.message = Some(message);
            self.publish_message(out);
            // A refused request must not be booked (as in OpenCode).
            if self.unbilled.is_some() {
                let patch = self.patch_session(true);
                out.push(patch);
            }
        }
    }

    /// Returns the model of the current step.
    pub(in crate::turn) fn step_model(&self) -> &ModelRef {
        self.compacting
            .as_ref()
            .and_then(Compaction::model)
            .unwrap_or(&self.begin.model)
    }

    /// Returns the prices of the current step's model.
    pub(in crate::turn) fn step_prices(&self) -> Prices {
        let plan = self.compacting.as_ref().and_then(|c| c.plan.as_ref());
        plan.map_or(self.begin.prices, |plan| plan.prices)
    }

    /// Completes the step of a written summary and accounts for it.
    pub(in crate::turn) fn settle_summary(&mut self, at: Millis, out: &mut Vec<Effect>) {
        let written = self
            .parts
            .values()
            .any(|part| matches!(&part.kind, PartKind::Text(text) if !text.text.trim().is_empty()));
        if !written {
            // An empty summary would replace a history that could not be recovered in the conversation.
            let error = NamedError {
                name: "UnknownError".to_string(),
                data: json!({
                    "message": "the model wrote no summary, so the history stays as it is; try again, or give the compaction agent another model",
                    "code": "compaction.empty",
                }),
            };
            if let Some(message) = &mut self.message {
                message.error = Some(error.clone());
            }
            self.publish_message(out);
            self.failed = Some(error);
            self.end(at, out);
            return;
        }
        let Some(compacting) = self.compacting.clone() else {
            return;
        };
        let plan = compacting.plan.unwrap_or_default();
        if let Some(start) = &plan.tail_start {
            let mut part = compacting.part;
            if let PartKind::Compaction(body) = &mut part.kind {
                body.insert("tail_start_id".to_string(), json!(start));
            }
            out.push(self.publish_part(at, part));
        }
        match plan.replay {
            Some(replay) if compacting.auto => {
                self.replay(at, *replay, out);
                self.compaction_done(at, true, out);
            }
            None if compacting.auto => self.hooks(HookPoint::CompactionAfterFinish, None, out),
            _ => self.compaction_done(at, false, out),
        }
    }

    /// Repeats the prompt that did not fit.
    fn replay(&mut self, at: Millis, replay: Replay, out: &mut Vec<Effect>) {
        self.user = UserMessage {
            id: self.ids.message(at),
            session_id: self.begin.session_id.clone(),
            time: MessageTime {
                created: at,
                completed: None,
            },
            summary: None,
            ..replay.message
        };
        out.push(self.publish_user());
        for draft in replay.parts {
            let part = self.user_part(at, draft.kind);
            out.push(self.publish_part(at, part));
        }
    }

    /// Continues after the hooks have decided whether the session continues automatically.
    pub(in crate::turn) fn after_compaction(
        &mut self,
        at: Millis,
        output: Option<&Value>,
        out: &mut Vec<Effect>,
    ) {
        let go_on = after_finish::read(output);
        if go_on {
            let overflow = self
                .compacting
                .as_ref()
                .is_some_and(Compaction::is_overflow);
            self.user = self.next_user(at);
            let note = if overflow { TOO_LARGE } else { "" };
            let mut extra = Object::new();
            extra.insert(
                "metadata".to_string(),
                json!({ "compaction_continue": true }),
            );
            let text = TextPart {
                text: [note, GO_ON].concat(),
                synthetic: Some(true),
                time: Some(PartTime {
                    start: at,
                    end: Some(at),
                    ..PartTime::default()
                }),
                extra,
                ..TextPart::default()
            };
            out.push(self.publish_user());
            let part = self.user_part(at, PartKind::Text(text));
            out.push(self.publish_part(at, part));
        }
        self.compaction_done(at, go_on, out);
    }

    fn compaction_done(&mut self, at: Millis, go_on: bool, out: &mut Vec<Effect>) {
        out.push(Effect::Publish {
            event: Event::SessionCompacted {
                session_id: self.begin.session_id.clone(),
            },
        });
        self.compacted = Some(self.step);
        self.compacting = None;
        // What the model read before is gone: reading it again is not a loop.
        self.loops = loops::Loops::default();
        if self.compact_if_needed(at, 0, out) || self.go_on_with_joined(at, 0, out) {
            return;
        }
        out.push(self.status(SessionStatus::Busy));
        if go_on {
            self.next_step(at, out);
        } else {
            self.end(at, out);
        }
    }

    /// Returns the error for a summary request that was refused as too long: the model's own message would not help,
    /// since the history is in the prompt and cannot be made shorter.
    pub(in crate::turn) fn summary_error(&self, error: NamedError) -> NamedError {
        if self.compacting.is_none() || error.name != OVERFLOW {
            return error;
        }
        NamedError {
            name: OVERFLOW.to_string(),
            data: json!({
                "message": "the history is too long to be summarised by this model; give the compaction agent a model with a larger context, or start a new session",
                "code": "compaction.overflow",
                "cause": error.message(),
            }),
        }
    }

    /// Refuses a tool call in a summary: no tool was offered.
    pub(in crate::turn) fn refuse_call(&mut self, tool: &str, out: &mut Vec<Effect>) {
        if self.stopping() {
            return;
        }
        let message = format!("the model called the tool `{tool}` instead of writing a summary");
        self.failed = Some(NamedError {
            name: "UnknownError".to_string(),
            data: json!({ "message": message, "code": "compaction.tool_call" }),
        });
        out.push(Effect::Abort);
    }
}
