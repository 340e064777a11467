//! From the prompt to the first step: the user message.

use alloc::string::ToString;
use alloc::vec::Vec;

use super::effect::Effect;
use crate::hooks::points::run::{before_command, before_start};
use crate::hooks::{HookInput, HookPoint};
use outrigger_protocol::buffer::from_value;
use outrigger_protocol::id::PluginId;
use outrigger_protocol::merged::EXECUTOR;
use outrigger_protocol::message::{MessageInfo, Part, PartKind, UserMessage};
use outrigger_protocol::provenance::{Actor, Cause, Deed, SUBTASK};
use outrigger_protocol::session::{PartInput, SessionStatus};
use outrigger_protocol::turn::{SessionPatch, TurnOutcome};
use outrigger_protocol::{Millis, Object};
use serde_json::Value;

use super::Turn;

impl Turn {
    pub(super) fn start(&mut self, at: Millis, out: &mut Vec<Effect>) {
        if let Some(asked) = self.begin.compact.clone() {
            self.start_compaction(asked, out);
        } else if self.begin.stored {
            let task = first_subtask(self.begin.parts.iter().map(|part| &part.kind)).cloned();
            self.begin_answer(at, task, out);
        } else if let Some(command) = self.begin.command.clone() {
            let input = before_command::Input {
                command: &command.name,
                session_id: &self.begin.session_id,
                arguments: &command.arguments,
            };
            let payload = input.payload(&before_command::Output {
                parts: &self.begin.parts,
            });
            self.hooks(HookPoint::RunBeforeCommand, Some(payload), out);
        } else {
            self.offer_user_message(self.begin.parts.clone(), out);
        }
    }

    pub(super) fn offer_user_message(&mut self, drafts: Vec<PartInput>, out: &mut Vec<Effect>) {
        let at = self.user.time.created;
        let parts: Vec<Part> = drafts
            .into_iter()
            .map(|draft| Part {
                id: draft.id.unwrap_or_else(|| self.ids.part(at)),
                session_id: self.begin.session_id.clone(),
                message_id: self.user.id.clone(),
                kind: draft.kind,
            })
            .collect();
        out.push(Effect::PatchSession {
            patch: SessionPatch {
                agent: Some(self.begin.agent.clone()),
                model: Some(self.begin.model.clone()),
                ..SessionPatch::default()
            },
        });
        let payload = before_start::Input(&self.begin.requested).payload(&before_start::Output {
            message: &MessageInfo::User(self.user.clone()),
            parts: &parts,
        });
        self.offered = parts;
        self.hooks(HookPoint::RunBeforeStart, Some(payload), out);
    }

    pub(super) fn store_user_message(
        &mut self,
        at: Millis,
        output: Option<Value>,
        changed_by: &[PluginId],
        out: &mut Vec<Effect>,
    ) {
        let (user, parts) = self.read_back_user(at, output);
        self.user = user;
        let before = first_subtask(self.offered.iter().map(|part| &part.kind));
        let task = first_subtask(parts.iter().map(|part| &part.kind)).cloned();
        self.subtask_caused_by(before != task.as_ref(), changed_by);
        out.push(self.publish_user());
        for part in parts {
            out.push(self.publish_part(at, part));
        }
        out.push(Effect::PatchSession {
            patch: SessionPatch::default(),
        });
        if self.begin.no_reply {
            self.done = true;
            out.push(Effect::Finish {
                outcome: TurnOutcome::Done { message_id: None },
            });
            return;
        }
        if self.stopping() {
            return;
        }
        self.begin_answer(at, task, out);
    }

    /// Attributes a subtask that hooks added or changed: it is a prompt of these plugins, not the user's, and so is everything
    /// that follows from it.
    pub(super) fn subtask_caused_by(&mut self, is_changed: bool, plugins: &[PluginId]) {
        for plugin in plugins.iter().filter(|_| is_changed) {
            let cause = Cause {
                actor: Actor::plugin(plugin),
                did: Deed::Prompted,
                what: Some(SUBTASK.to_string()),
            };
            self.user.provenance.push(cause.clone());
            self.begin.provenance.push(cause);
        }
    }

    /// Stores the turn's own message. Events of its hooks come first, as in OpenCode.
    fn begin_answer(&mut self, at: Millis, task: Option<Object>, out: &mut Vec<Effect>) {
        let used = self.begin.auto_compact.as_ref().map_or(0, |auto| auto.used);
        if task.is_some() || !self.go_on_with_joined(at, used, out) {
            self.answer(at, task, used, out);
        }
    }

    /// Continues after the message is stored: runs a subtask, or calls the model. `used` is the token count of the last request.
    pub(super) fn answer(
        &mut self,
        at: Millis,
        task: Option<Object>,
        used: u64,
        out: &mut Vec<Effect>,
    ) {
        out.push(self.status(SessionStatus::Busy));
        if let Some(error) = self.begin.unaskable.clone() {
            self.failed = Some(error);
            self.end(at, out);
            return;
        }
        if let Some(task) = task {
            self.begin_subtask(at, &task, out);
            return;
        }
        if !self.compact_if_needed(at, used, out) {
            self.next_step(at, out);
        }
    }

    /// Reads the user message and its parts as the hooks left them. Unreadable values keep their previous state; parts that a
    /// plugin added get the ids that they lack (all are distinct); the message keeps its own.
    fn read_back_user(&mut self, at: Millis, output: Option<Value>) -> (UserMessage, Vec<Part>) {
        let Some(mut output) = output else {
            return (self.user.clone(), self.offered.clone());
        };
        let user = match output.get_mut("message").map(Value::take).map(from_value) {
            Some(Ok(MessageInfo::User(mut changed))) => {
                // Hooks cannot choose the executor.
                changed.extra.remove(EXECUTOR);
                let executor = self
                    .user
                    .extra
                    .get(EXECUTOR)
                    .map(|it| (EXECUTOR.to_string(), it.clone()));
                changed.extra.extend(executor);
                UserMessage {
                    id: self.user.id.clone(),
                    session_id: self.user.session_id.clone(),
                    provenance: self.user.provenance.clone(),
                    ..changed
                }
            }
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
            parts.extend(from_value(value).ok().or_else(before));
        }
        (user, parts)
    }
}

/// Returns the part of a message that starts a subagent: the first of its kind. Further ones are content.
pub(super) fn first_subtask<'a>(
    mut kinds: impl Iterator<Item = &'a PartKind>,
) -> Option<&'a Object> {
    kinds.find_map(|kind| match kind {
        PartKind::Subtask(task) => Some(task),
        _ => None,
    })
}
