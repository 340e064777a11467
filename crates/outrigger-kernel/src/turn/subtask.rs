//! A command that runs as a subtask: the call of the `task` tool is the user's, not the model's, or that of a plugin whose hook
//! made or changed it. It is a separate answer; then the model reads its result.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::effect::Effect;
use outrigger_protocol::buffer::from_value;
use outrigger_protocol::event::Event;
use outrigger_protocol::message::{
    MessageInfo, MessageTime, ModelRef, Part, PartKind, PartTime, TextPart, ToolPart, ToolState,
    UserMessage,
};
use outrigger_protocol::tool::ToolCall;
use outrigger_protocol::turn::EffectId;
use outrigger_protocol::{Millis, Object};
use serde_json::{Value, json};

use super::{OpenEffect, Turn};

/// The prompt that follows the subagent's report.
const GO_ON: &str = "Summarize the task tool output above and continue with your task.";

impl Turn {
    /// Returns whether an effect is the call of a subtask: no model made it. Its provenance states who did.
    #[must_use]
    pub fn is_subtask_call(&self, effect: EffectId) -> bool {
        self.subtask.is_some() && matches!(self.open.get(&effect), Some(OpenEffect::Tool(..)))
    }

    /// Starts the subagent; `task` is the part of the user's message.
    pub(super) fn begin_subtask(&mut self, at: Millis, task: &Object, out: &mut Vec<Effect>) {
        if self.step == 0 {
            self.ask_title(out);
        }
        let text = |key: &str| task.get(key).and_then(Value::as_str).unwrap_or_default();
        let model: ModelRef = task
            .get("model")
            .and_then(|model| from_value(model.clone()).ok())
            .unwrap_or_else(|| self.begin.model.clone());
        self.message = Some(self.new_message(at, text("agent"), &model));
        self.publish_message(out);
        let mut input = json!({
            "prompt": text("prompt"), "description": text("description"), "subagent_type": text("agent"),
        });
        let command = task.get("command").and_then(Value::as_str);
        if let (Some(command), Some(fields)) = (command, input.as_object_mut()) {
            fields.insert("command".to_string(), json!(command));
        }
        let call = ToolCall {
            call_id: self.ids.call(at),
            session_id: self.begin.session_id.clone(),
            message_id: self.message_id(),
            agent: text("agent").to_string(),
            tool: "task".to_string(),
            input,
            provenance: self.begin.provenance.clone(),
        };
        self.used_calls.insert(call.call_id.clone());
        self.subtask = Some(command.map(ToString::to_string));
        let part = self.new_part(at, running(&call, at));
        let effect = self.open(OpenEffect::Tool(part.id.clone(), Box::new(call.clone())));
        out.push(self.keep_part(at, part));
        out.push(Effect::RunTool { effect, call });
    }

    /// Handles the end of the subagent, successful or not: for a command, the model continues.
    pub(super) fn settle_subtask(
        &mut self,
        at: Millis,
        command: Option<String>,
        out: &mut Vec<Effect>,
    ) {
        if let Some(message) = &mut self.message {
            message.finish = Some("tool-calls".to_string());
            message.time.completed = Some(at);
        }
        self.publish_message(out);
        if command.is_some() {
            let user = UserMessage {
                id: self.ids.message(at),
                session_id: self.begin.session_id.clone(),
                time: MessageTime {
                    created: at,
                    completed: None,
                },
                agent: self.user.agent.clone(),
                model: self.user.model.clone(),
                provenance: self.begin.provenance.clone(),
                ..UserMessage::default()
            };
            out.push(Effect::Publish {
                event: Event::MessageUpdated {
                    session_id: self.begin.session_id.clone(),
                    info: Box::new(MessageInfo::User(user.clone())),
                },
            });
            let part = Part {
                id: self.ids.part(at),
                session_id: user.session_id.clone(),
                message_id: user.id.clone(),
                kind: PartKind::Text(TextPart {
                    text: GO_ON.to_string(),
                    synthetic: Some(true),
                    ..TextPart::default()
                }),
            };
            out.push(self.publish_part(at, part));
            self.user = user;
        }
        self.parts.clear();
        if !self.go_on_with_joined(at, 0, out) {
            self.next_step(at, out);
        }
    }
}

/// Returns the part of a running call.
fn running(call: &ToolCall, at: Millis) -> PartKind {
    PartKind::Tool(ToolPart {
        call_id: call.call_id.clone(),
        tool: call.tool.clone(),
        state: ToolState::Running {
            input: call.input.clone(),
            title: None,
            metadata: None,
            time: PartTime {
                start: at,
                end: None,
                ..PartTime::default()
            },
        },
        metadata: None,
        provenance: call.provenance.clone(),
        extra: Object::new(),
    })
}
