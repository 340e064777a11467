//! Sessions, messages and parts in OpenCode's form, of any version: a key missing in an older version must not lose a message.

use outrigger_protocol::message::{MessageInfo, Part};
use outrigger_protocol::session::Session;
use serde_json::{Value, json};

pub(crate) fn session(value: Value) -> Result<Session, serde_json::Error> {
    let mut value = over(
        json!({
            "slug": "", "projectID": "", "directory": "", "path": "", "title": "", "version": "", "cost": 0.0, "tokens": no_tokens(),
            "time": { "created": 0, "updated": 0 },
        }),
        value,
    );
    // These are ignored, and must not cause errors.
    for key in [
        "permission",
        "revert",
        "summary",
        "model",
        "metadata",
        "share",
    ] {
        if let Value::Object(fields) = &mut value {
            fields.remove(key);
        }
    }
    serde_json::from_value(value)
}

pub(crate) fn info(value: Value) -> Result<MessageInfo, serde_json::Error> {
    let usual = match value.get("role").and_then(Value::as_str) {
        Some("assistant") => json!({
            "sessionID": "", "parentID": "", "mode": "", "agent": "", "path": { "cwd": "", "root": "" }, "cost": 0.0, "modelID": "",
            "providerID": "", "time": { "created": 0 }, "tokens": no_tokens(),
        }),
        _ => json!({
            "sessionID": "", "agent": "", "model": { "providerID": "", "modelID": "" }, "time": { "created": 0 },
        }),
    };
    let mut value = over(usual, value);
    for key in [
        "tools",
        "format",
        "system",
        "summary",
        "structured",
        "provenance",
        "model",
        "variant",
    ] {
        let is_flag = key == "summary" && value.get(key).is_some_and(Value::is_boolean);
        if let Value::Object(fields) = &mut value
            && !is_flag
        {
            fields.remove(key);
        }
    }
    if value.get("role").and_then(Value::as_str) == Some("user") {
        value = over(
            json!({ "model": { "providerID": "", "modelID": "" } }),
            value,
        );
    }
    serde_json::from_value(value)
}

pub(crate) fn part(value: Value) -> Result<Part, serde_json::Error> {
    let usual = match value.get("type").and_then(Value::as_str) {
        Some("step-finish") => json!({ "reason": "", "cost": 0.0, "tokens": no_tokens() }),
        Some("reasoning") => json!({ "time": { "start": 0 } }),
        _ => json!({}),
    };
    let ids = json!({ "id": "", "sessionID": "", "messageID": "" });
    serde_json::from_value(over(over(ids, usual), value))
}

fn no_tokens() -> Value {
    json!({ "input": 0, "output": 0, "reasoning": 0, "cache": { "read": 0, "write": 0 } })
}

fn over(usual: Value, given: Value) -> Value {
    match (usual, given) {
        (Value::Object(mut whole), Value::Object(given)) => {
            whole.extend(given);
            Value::Object(whole)
        }
        (_, given) => given,
    }
}
