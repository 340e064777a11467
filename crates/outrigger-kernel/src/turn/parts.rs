//! Parts of the message that is being written.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use outrigger_protocol::Millis;
use outrigger_protocol::event::Event;
use outrigger_protocol::id::PartId;
use outrigger_protocol::message::{
    MessageInfo, Part, PartKind, PartTime, ReasoningPart, TextPart, ToolState, UserMessage,
};
use outrigger_protocol::turn::{Effect, HookPayload};
use serde_json::{Value, json};

use super::{Open, OpenBlock, Turn};

impl Turn {
    pub(super) fn new_part(&mut self, at: Millis, kind: PartKind) -> Part {
        Part {
            id: self.ids.part(at),
            session_id: self.begin.session_id.clone(),
            message_id: self.message_id(),
            kind,
        }
    }

    /// Remembers a part of the assistant message as it is now, and publishes it.
    pub(super) fn keep_part(&mut self, at: Millis, part: Part) -> Effect {
        self.parts.insert(part.id.clone(), part.clone());
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

    /// A text is complete: the hooks see it before it is stored.
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
            // Trailing blanks are no content (the reference trims them too).
            part.text = text.trim_end().to_string();
        }
        if self.stopping() {
            self.finish_text(at, &id, None, out);
            return;
        }
        let text = self.text_of(&id).unwrap_or_default();
        let effect = self.open(Open::Text(id.clone()));
        let payload = HookPayload {
            input: json!({ "sessionID": self.begin.session_id, "messageID": self.message_id(), "partID": id }),
            output: json!({ "text": text }),
        };
        out.push(Effect::Hooks {
            effect,
            point: "llm.after_text".to_string(),
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
        let Some(mut part) = self.parts.get(id).cloned() else {
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
        let Some(mut part) = self.parts.get(&id).cloned() else {
            return;
        };
        if let PartKind::Reasoning(body) = &mut part.kind {
            body.text = text.trim_end().to_string();
            body.metadata = metadata.filter(|metadata| !metadata.is_null());
            body.time.end = Some(at);
        }
        out.push(self.keep_part(at, part));
    }

    /// What the stream left open is closed as it stands: texts get their end, calls that never came to be get an error.
    pub(super) fn close_leftovers(&mut self, at: Millis, out: &mut Vec<Effect>) {
        self.blocks.clear();
        self.writing.clear();
        let ids: Vec<PartId> = self.parts.keys().cloned().collect();
        for id in ids {
            let Some(mut part) = self.parts.get(&id).cloned() else {
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

    /// The user message and its parts as the hooks left them. What cannot be read any more is as it was; parts that a
    /// plugin added get the identifiers that they lack (two never share one); the message keeps its own.
    pub(super) fn read_back_user(
        &mut self,
        at: Millis,
        output: Option<Value>,
    ) -> (UserMessage, Vec<Part>) {
        let Some(mut output) = output else {
            return (self.user.clone(), self.offered.clone());
        };
        let user = match output
            .get_mut("message")
            .map(Value::take)
            .map(serde_json::from_value)
        {
            Some(Ok(MessageInfo::User(changed))) => UserMessage {
                id: self.user.id.clone(),
                session_id: self.user.session_id.clone(),
                ..changed
            },
            _ => self.user.clone(),
        };
        let raw = match output.get_mut("parts").map(Value::take) {
            Some(Value::Array(raw)) => raw,
            _ => return (user, self.offered.clone()),
        };
        let mut parts: Vec<Part> = Vec::new();
        for mut value in raw {
            let Some(fields) = value.as_object_mut() else {
                continue;
            };
            let given = fields
                .get("id")
                .and_then(Value::as_str)
                .filter(|id| !id.is_empty())
                .map(ToString::to_string);
            let id = match given {
                Some(id) if !parts.iter().any(|part| part.id.0 == id) => id,
                _ => self.ids.part(at).0,
            };
            fields.insert("id".to_string(), Value::String(id.clone()));
            fields.insert(
                "sessionID".to_string(),
                Value::String(user.session_id.0.clone()),
            );
            fields.insert("messageID".to_string(), Value::String(user.id.0.clone()));
            let before = || self.offered.iter().find(|part| part.id.0 == id).cloned();
            parts.extend(serde_json::from_value(value).ok().or_else(before));
        }
        (user, parts)
    }
}
