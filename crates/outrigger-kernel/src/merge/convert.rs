//! From bus events, and from what other agents say, to conversation messages.

use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use outrigger_protocol::event::Event;
use outrigger_protocol::merged::{AgentOutput, ConversationMessage};
use outrigger_protocol::message::{MessageInfo, Part, PartKind, ToolPart, ToolState};
use outrigger_protocol::{Millis, Object};
use serde_json::{Value, json};

use super::PLUGIN;

/// Follows the events of a session and says what its conversation stream carries.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    users: BTreeSet<String>,
    started: BTreeSet<String>,
    said: BTreeSet<String>,
}

impl Conversation {
    /// The messages that an event gives; none for most. Every part is said once, however often it is updated.
    #[must_use]
    pub fn on(&mut self, event: &Event) -> Vec<ConversationMessage> {
        match event {
            Event::MessageUpdated { info, .. } => {
                if let MessageInfo::User(user) = info.as_ref() {
                    self.users.insert(user.id.0.clone());
                }
                vec![]
            }
            Event::PartUpdated { part, time, .. } => self.part(part, *time),
            _ => vec![],
        }
    }

    fn part(&mut self, part: &Part, time: Millis) -> Vec<ConversationMessage> {
        match &part.kind {
            PartKind::Text(text) => {
                let user = self.users.contains(part.message_id.as_str());
                let complete = user || text.time.as_ref().is_some_and(|t| t.end.is_some());
                if !complete || !self.said.insert(part.id.0.clone()) {
                    return vec![];
                }
                let at = text.time.as_ref().map_or(time, |t| t.start);
                let role = if user { "user" } else { "assistant" };
                vec![message(
                    &part.id.0,
                    role,
                    "text",
                    text.text.clone(),
                    at,
                    Object::new(),
                )]
            }
            PartKind::Tool(call) => self.tool(part, call, time),
            _ => vec![],
        }
    }

    fn tool(&mut self, part: &Part, call: &ToolPart, time: Millis) -> Vec<ConversationMessage> {
        let id = &part.id.0;
        let start = |at| {
            let metadata = json!({ "tool_name": call.tool, "tool_use_id": call.call_id, "input": call.state.input() });
            message(
                id,
                "assistant",
                "tool_use",
                call.tool.clone(),
                at,
                fields_of(call, metadata),
            )
        };
        let (begun, output, metadata, is_error) = match &call.state {
            ToolState::Pending { .. } => return vec![],
            ToolState::Running { time, .. } => {
                return if self.started.insert(id.clone()) {
                    vec![start(time.start)]
                } else {
                    vec![]
                };
            }
            ToolState::Completed {
                output,
                metadata,
                time,
                ..
            } => (time, output, Some(metadata), false),
            ToolState::Error {
                error,
                metadata,
                time,
                ..
            } => (time, error, metadata.as_ref(), true),
        };
        if !self.said.insert(id.clone()) {
            return vec![];
        }
        let mut out = vec![];
        // A call that was refused before it ran has no start of its own.
        if self.started.insert(id.clone()) {
            out.push(start(begun.start));
        }
        let fields = json!({
            "tool_name": call.tool, "tool_use_id": call.call_id, "output": output, "is_error": is_error,
            "metadata": metadata.cloned().unwrap_or(Value::Null), "started": begun.start,
        });
        let result_id = alloc::format!("{id}-result");
        out.push(message(
            &result_id,
            "assistant",
            "tool_result",
            output.clone(),
            begun.end.unwrap_or(time),
            fields_of(call, fields),
        ));
        out
    }
}

/// A conversation message of what another agent said (E1). `id` is the caller's.
#[must_use]
pub fn from_agent(id: &str, output: AgentOutput) -> ConversationMessage {
    match output {
        AgentOutput::ToolUse {
            id: call,
            tool_name,
            tool_input,
            timestamp,
        } => {
            let metadata =
                json!({ "tool_name": tool_name, "tool_use_id": call, "input": tool_input });
            message(
                id,
                "assistant",
                "tool_use",
                tool_name,
                timestamp,
                object(metadata),
            )
        }
        AgentOutput::ToolResult {
            tool_use_id,
            tool_name,
            result,
            is_error,
            timestamp,
        } => {
            let content = match &result {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let metadata = json!({ "tool_name": tool_name, "tool_use_id": tool_use_id, "output": result, "is_error": is_error });
            message(
                id,
                "assistant",
                "tool_result",
                content,
                timestamp,
                object(metadata),
            )
        }
        AgentOutput::Text { text, timestamp } => {
            message(id, "assistant", "text", text, timestamp, Object::new())
        }
    }
}

fn message(
    id: &str,
    role: &str,
    kind: &str,
    content: String,
    timestamp: Millis,
    metadata: Object,
) -> ConversationMessage {
    ConversationMessage {
        id: id.to_string(),
        role: role.to_string(),
        message_type: kind.to_string(),
        content,
        timestamp,
        metadata,
    }
}

/// The fields of a message about a call. A tool of a plugin is not to be taken for the bundled one whose name it has.
fn fields_of(call: &ToolPart, fields: Value) -> Object {
    let mut fields = object(fields);
    if let Some(plugin) = call.provenance.replaced_tool_of() {
        fields.insert(PLUGIN.into(), json!(plugin));
    }
    fields
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(fields) => fields,
        _ => Object::new(),
    }
}
