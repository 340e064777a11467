//! A conversation that grows by one message with every call.

use std::sync::Arc;

use outrigger_protocol::history::{History, HistoryMessage};
use outrigger_protocol::message::MessageWithParts;
use serde_json::{Value, json};

pub(crate) struct Conversation {
    first: History,
    messages: History,
    made: usize,
    size: usize,
}

impl Conversation {
    /// `messages` messages with about `size` bytes of JSON each.
    pub(crate) fn new(messages: usize, size: usize) -> Self {
        let first: History = (0..messages).map(|index| message(index, size)).collect();
        Self {
            messages: first.clone(),
            first,
            made: messages,
            size,
        }
    }

    /// The conversation with one message more. The others are those of the call before, as in a turn of the agent. One that
    /// is half as long again goes back to where it began, so that ten messages stay about ten.
    pub(crate) fn next(&mut self) -> History {
        if self.messages.len() * 2 >= self.first.len() * 3 {
            self.messages = self.first.clone();
        }
        let next: HistoryMessage = message(self.made, self.size).into();
        self.made += 1;
        self.messages.push(Arc::new(next));
        self.messages.clone()
    }
}

/// In the form that messages have here: a record of the message and two parts, one of them a tool's output.
fn message(index: usize, size: usize) -> MessageWithParts {
    let (id, session) = (format!("msg_{index:026}"), "ses_00000000000000000000000000");
    let envelope = json!({
        "info": {
            "id": id, "sessionID": session, "role": "assistant", "agent": "build", "mode": "build",
            "parentID": "msg_00000000000000000000000000", "modelID": "test-model", "providerID": "test",
            "cost": 0.0125, "tokens": {"input": 1200, "output": 340, "reasoning": 0, "cache": {"read": 0, "write": 0}},
            "time": {"created": 1_760_000_000_000_u64, "completed": 1_760_000_001_000_u64},
            "path": {"cwd": "/project", "root": "/project"},
        },
        "parts": [
            {"id": format!("prt_{index:025}0"), "messageID": id, "sessionID": session, "type": "text", "text": "Let me look."},
            {"id": format!("prt_{index:025}1"), "messageID": id, "sessionID": session, "type": "tool", "tool": "read",
             "callID": format!("call_{index}"), "state": {"status": "completed", "input": {"filePath": "/project/a.rs"},
             "output": "", "title": "a.rs", "metadata": {}, "time": {"start": 1_760_000_000_100_u64, "end": 1_760_000_000_200_u64}}},
        ],
    });
    let rest = size.saturating_sub(envelope.to_string().len());
    // Source code as tools read it: lines, quotes, tabs.
    let line = format!("{index:05}|\tlet value = \"some text\"; // what a file has\n");
    let mut text = line.repeat(rest / line.len() + 1);
    text.truncate(rest * 9 / 10);
    let mut message = envelope;
    message["parts"][1]["state"]["output"] = Value::String(text);
    serde_json::from_value(message).unwrap()
}
