//! Decodes messages as plugins left them. A model reads roles, texts and calls; other missing fields in a plugin's message
//! are harmless, as in OpenCode.

use std::sync::Arc;

use outrigger_protocol::history::History;
use outrigger_protocol::message::{MessageInfo, MessageWithParts, Part};
use serde_json::{Map, Value, json};

/// Returns the conversation with only its valid messages.
#[must_use]
pub fn history(left: &History) -> History {
    if left.is_stored() {
        return left.clone();
    }
    let mut history = History::default();
    for item in left.iter() {
        if item.stored().is_some() {
            history.push(Arc::clone(item));
        } else if let Some(message) = message(item.to_value()) {
            history.push(Arc::new(message.into()));
        }
    }
    history
}

/// Returns the message, without invalid parts. `None`, with a log line, for an unknown role.
fn message(item: Value) -> Option<MessageWithParts> {
    if let Ok(whole) = serde_json::from_value(item.clone()) {
        return Some(whole);
    }
    let info = item.get("info").cloned().unwrap_or_default();
    let info: MessageInfo = match serde_json::from_value(completed(info)) {
        Ok(info) => info,
        Err(error) => {
            tracing::warn!(
                "[hook] a message of experimental.chat.messages.transform is skipped: {error}"
            );
            return None;
        }
    };
    let parts = match item.get("parts") {
        Some(Value::Array(parts)) => parts.as_slice(),
        _ => &[],
    };
    let parts = parts.iter().filter_map(|raw| part(raw, &info)).collect();
    Some(MessageWithParts { info, parts })
}

fn part(raw: &Value, info: &MessageInfo) -> Option<Part> {
    let own = json!({ "id": "", "sessionID": "", "messageID": info.id() });
    serde_json::from_value(over(own, raw.clone()))
        .inspect_err(|error| {
            let kind = raw.get("type").unwrap_or(&Value::Null);
            tracing::warn!(
                "[hook] a part {kind} of experimental.chat.messages.transform is skipped: {error}"
            );
        })
        .ok()
}

/// Adds missing keys that every message of its role has.
fn completed(info: Value) -> Value {
    let role = info.get("role").and_then(Value::as_str);
    let usual = match role {
        Some("assistant") => json!({
            "id": "", "sessionID": "", "parentID": "", "mode": "", "agent": "", "path": { "cwd": "", "root": "" },
            "cost": 0.0, "modelID": "", "providerID": "", "time": { "created": 0 },
            "tokens": { "input": 0, "output": 0, "reasoning": 0, "cache": { "read": 0, "write": 0 } },
        }),
        _ => json!({
            "id": "", "sessionID": "", "agent": "", "model": { "providerID": "", "modelID": "" },
            "time": { "created": 0 },
        }),
    };
    over(usual, info)
}

fn over(usual: Value, given: Value) -> Value {
    let (Value::Object(mut whole), Value::Object(given)) = (usual, given) else {
        return Value::Object(Map::new());
    };
    whole.extend(given);
    Value::Object(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_plugin_made_is_read_as_far_as_it_goes() {
        let whole = json!({ "type": "text", "text": "hi" });
        let foreign = json!({ "type": "tool_result", "toolUseId": "c1" });
        for (item, want) in [
            (
                json!({ "info": { "role": "user", "sessionID": "s" }, "parts": [foreign.clone(), whole.clone()] }),
                Some(("user", 1)),
            ),
            (
                json!({ "info": { "role": "assistant" }, "parts": [whole.clone(), whole] }),
                Some(("assistant", 2)),
            ),
            (json!({ "info": { "role": "user" } }), Some(("user", 0))),
            (json!({ "info": { "role": "judge" }, "parts": [] }), None),
            (json!({ "parts": [] }), None),
            (json!("text"), None),
        ] {
            let got = message(item.clone()).map(|m| {
                let role = match m.info {
                    MessageInfo::User(_) => "user",
                    MessageInfo::Assistant(_) => "assistant",
                };
                (role, m.parts.len())
            });
            assert_eq!(got, want, "{item}");
        }
    }
}
