//! A conversation that grows by one message with every call.

use serde_json::{Value, json};

pub(crate) struct History {
    messages: Vec<Value>,
    size: usize,
}

impl History {
    /// `messages` messages with about `size` bytes of JSON each.
    pub(crate) fn new(messages: usize, size: usize) -> Self {
        let messages = (0..messages).map(|index| message(index, size)).collect();
        Self { messages, size }
    }

    /// The history with one message more, as the payload's output.
    pub(crate) fn next(&mut self) -> Value {
        self.messages.push(message(self.messages.len(), self.size));
        json!({"messages": self.messages})
    }
}

/// In the form that messages have here: a record of the message and two parts, one of them a tool's output.
fn message(index: usize, size: usize) -> Value {
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
             "output": "", "title": "a.rs", "time": {"start": 1_760_000_000_100_u64, "end": 1_760_000_000_200_u64}}},
        ],
    });
    let rest = size.saturating_sub(envelope.to_string().len());
    // Source code as tools read it: lines, quotes, tabs.
    let line = format!("{index:05}|\tlet value = \"some text\"; // what a file has\n");
    let mut text = line.repeat(rest / line.len() + 1);
    text.truncate(rest * 9 / 10);
    let mut message = envelope;
    message["parts"][1]["state"]["output"] = Value::String(text);
    message
}
