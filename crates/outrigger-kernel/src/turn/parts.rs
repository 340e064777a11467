//! Parts of the message that is being written.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::effect::Effect;
use crate::hooks::points::llm::after_text;
use crate::hooks::{HookInput, HookPoint};
use outrigger_protocol::Millis;
use outrigger_protocol::event::Event;
use outrigger_protocol::id::PartId;
use outrigger_protocol::message::{Part, PartKind, PartTime, ReasoningPart, TextPart, ToolState};
use serde_json::Value;

use super::{OpenBlock, OpenEffect, Turn};

impl Turn {
    pub(super) fn new_part(&mut self, at: Millis, kind: PartKind) -> Part {
        Part {
            id: self.ids.part(at),
            session_id: self.begin.session_id.clone(),
            message_id: self.message_id(),
            kind,
        }
    }

    /// Returns a part of the assistant message.
    pub(super) fn part(&self, id: &PartId) -> Option<Part> {
        self.parts.get(id).map(|part| Part::clone(part))
    }

    /// Stores the current state of a part of the assistant message and publishes it.
    pub(super) fn keep_part(&mut self, at: Millis, part: Part) -> Effect {
        self.parts.insert(part.id.clone(), Box::new(part.clone()));
        self.publish_part(at, part)
    }

    pub(super) fn publish_part(&self, at: Millis, part: Part) -> Effect {
        Effect::Publish {
            event: Event::PartUpdated {
                session_id: self.begin.session_id.clone(),
                part: Box::new(part),
                time: at,
            },
        }
    }

    pub(super) fn open_block(
        &mut self,
        at: Millis,
        index: u32,
        reasoning: bool,
        out: &mut Vec<Effect>,
    ) {
        let time = PartTime {
            start: at,
            end: None,
            ..PartTime::default()
        };
        let kind = if reasoning {
            PartKind::Reasoning(ReasoningPart {
                time,
                ..ReasoningPart::default()
            })
        } else {
            PartKind::Text(TextPart {
                time: Some(time),
                ..TextPart::default()
            })
        };
        let part = self.new_part(at, kind);
        self.blocks.push(OpenBlock {
            index,
            part: part.id.clone(),
        });
        out.push(self.keep_part(at, part));
    }

    fn take_block(&mut self, index: u32) -> Option<PartId> {
        let at = self.blocks.iter().position(|b| b.index == index)?;
        Some(self.blocks.remove(at).part)
    }

    /// Completes a text: the hooks see it before it is stored.
    pub(super) fn close_text(
        &mut self,
        at: Millis,
        index: u32,
        text: String,
        out: &mut Vec<Effect>,
    ) {
        let Some(id) = self.take_block(index) else {
            return;
        };
        if let Some(PartKind::Text(part)) = self.parts.get_mut(&id).map(|p| &mut p.kind) {
            // Trailing blanks are not content (OpenCode trims them too).
            part.text = text.trim_end().to_string();
        }
        if self.stopping() {
            self.finish_text(at, &id, None, out);
            return;
        }
        let text = self.text_of(&id).unwrap_or_default();
        let effect = self.open(OpenEffect::Text(id.clone()));
        let input = after_text::Input {
            session_id: &self.begin.session_id,
            message_id: &self.message_id(),
            part_id: &id,
        };
        let payload = input.payload(&after_text::Output { text: &text });
        out.push(Effect::Hooks {
            effect,
            point: HookPoint::LlmAfterText,
            payload: Some(payload),
        });
    }

    fn text_of(&self, id: &PartId) -> Option<String> {
        match &self.parts.get(id)?.kind {
            PartKind::Text(part) => Some(part.text.clone()),
            _ => None,
        }
    }

    pub(super) fn finish_text(
        &mut self,
        at: Millis,
        id: &PartId,
        text: Option<&str>,
        out: &mut Vec<Effect>,
    ) {
        let Some(mut part) = self.part(id) else {
            return;
        };
        if let PartKind::Text(body) = &mut part.kind {
            if let Some(text) = text {
                body.text = text.to_string();
            }
            let start = body.time.as_ref().map_or(at, |t| t.start);
            body.time = Some(PartTime {
                start,
                end: Some(at),
                ..PartTime::default()
            });
        }
        out.push(self.keep_part(at, part));
    }

    pub(super) fn close_reasoning(
        &mut self,
        at: Millis,
        index: u32,
        text: String,
        metadata: Option<Value>,
        out: &mut Vec<Effect>,
    ) {
        let Some(id) = self.take_block(index) else {
            return;
        };
        let Some(mut part) = self.part(&id) else {
            return;
        };
        if let PartKind::Reasoning(body) = &mut part.kind {
            body.text = text.trim_end().to_string();
            body.metadata = metadata.filter(|metadata| !metadata.is_null());
            body.time.end = Some(at);
        }
        out.push(self.keep_part(at, part));
    }

    /// Closes what the stream left open: texts are completed as they are, unfinished calls get an error.
    pub(super) fn close_leftovers(&mut self, at: Millis, out: &mut Vec<Effect>) {
        self.blocks.clear();
        self.writing.clear();
        let ids: Vec<PartId> = self.parts.keys().cloned().collect();
        for id in ids {
            let Some(mut part) = self.part(&id) else {
                continue;
            };
            let changed = match &mut part.kind {
                PartKind::Text(TextPart {
                    time: Some(time), ..
                }) if time.end.is_none() => {
                    time.end = Some(at);
                    true
                }
                PartKind::Reasoning(body) if body.time.end.is_none() => {
                    body.time.end = Some(at);
                    true
                }
                PartKind::Tool(call) if !call.state.is_final() => {
                    let start = match &call.state {
                        ToolState::Running { time, .. } => time.start,
                        _ => at,
                    };
                    call.state = ToolState::Error {
                        input: call.state.input().clone(),
                        error: "Tool execution aborted".to_string(),
                        metadata: None,
                        time: PartTime {
                            start,
                            end: Some(at),
                            ..PartTime::default()
                        },
                    };
                    true
                }
                _ => false,
            };
            if changed {
                out.push(self.keep_part(at, part));
            }
        }
    }
}
