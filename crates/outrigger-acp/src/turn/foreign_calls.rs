//! Calls that the editor knows by a question only: those of subagents.
//!
//! Zed shows a call as running from the answer on, until it is sent the call's end.

use std::collections::BTreeSet;

use outrigger_protocol::event::Event;
use outrigger_protocol::message::{PartKind, ToolState};
use outrigger_protocol::permission::Reply;
use serde_json::{Value, json};

/// The calls whose end was not sent yet, by the identifier that the editor has.
#[derive(Debug, Default)]
pub(crate) struct ForeignCalls(BTreeSet<String>);

impl ForeignCalls {
    pub(crate) fn add(&mut self, id: &str) {
        self.0.insert(id.to_owned());
    }

    /// Returns the end of a call, if an event reports it: the call's own, or the answer to a question that belongs to no call.
    pub(crate) fn on(&mut self, event: &Event) -> Option<Value> {
        let (id, is_done) = match event {
            Event::PartUpdated { part, .. } => match &part.kind {
                PartKind::Tool(call) if call.state.is_final() => {
                    let is_done = matches!(call.state, ToolState::Completed { .. });
                    (call.call_id.as_str(), is_done)
                }
                _ => return None,
            },
            Event::PermissionReplied {
                request_id, reply, ..
            } => (request_id.as_str(), *reply != Reply::Reject),
            Event::QuestionReplied { request_id, .. } => (request_id.as_str(), true),
            Event::QuestionRejected { request_id, .. } => (request_id.as_str(), false),
            _ => return None,
        };
        self.0.remove(id).then(|| ended(id, is_done))
    }

    /// Returns the ends of the calls that are left when the turn is over.
    pub(crate) fn end(&mut self) -> Vec<Value> {
        let left = std::mem::take(&mut self.0);
        left.iter().map(|id| ended(id, false)).collect()
    }
}

fn ended(id: &str, is_done: bool) -> Value {
    let status = if is_done { "completed" } else { "failed" };
    json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status })
}
