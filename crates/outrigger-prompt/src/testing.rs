//! Histories for the tests.

use outrigger_protocol::message::MessageWithParts;
use serde_json::{Value, json};

fn message(mut info: Value, id: &str, parts: Value) -> MessageWithParts {
    let fields = info.as_object_mut().unwrap();
    fields.insert("id".into(), json!(id));
    fields.insert("sessionID".into(), json!("ses_1"));
    fields.insert("time".into(), json!({ "created": 1 }));
    let mut parts = parts;
    for (n, part) in parts.as_array_mut().unwrap().iter_mut().enumerate() {
        let part = part.as_object_mut().unwrap();
        part.insert("id".into(), json!(format!("prt_{id}_{n}")));
        part.insert("sessionID".into(), json!("ses_1"));
        part.insert("messageID".into(), json!(id));
    }
    serde_json::from_value(json!({ "info": info, "parts": parts })).unwrap()
}

pub(crate) fn user_parts(id: &str, parts: Value) -> MessageWithParts {
    let info =
        json!({ "role": "user", "agent": "build", "model": { "providerID": "p", "modelID": "m" } });
    message(info, id, parts)
}

pub(crate) fn user(id: &str, text: &str) -> MessageWithParts {
    user_parts(id, json!([{ "type": "text", "text": text }]))
}

pub(crate) fn pinned_user(id: &str, text: &str) -> MessageWithParts {
    user_parts(
        id,
        json!([
            { "type": "text", "text": text, "metadata": { "pinned": true } },
            { "type": "text", "text": "do it" },
            { "type": "text", "text": "hidden", "ignored": true, "metadata": { "pinned": true } },
        ]),
    )
}

pub(crate) fn compaction(id: &str, tail: Option<&str>) -> MessageWithParts {
    let mut part = json!({ "type": "compaction", "auto": false });
    if let Some(tail) = tail {
        part.as_object_mut()
            .unwrap()
            .insert("tail_start_id".into(), json!(tail));
    }
    user_parts(id, json!([part]))
}

pub(crate) fn answer_parts(id: &str, parent: &str, more: Value, parts: Value) -> MessageWithParts {
    let mut info = json!({
        "role": "assistant", "parentID": parent, "mode": "build", "agent": "build",
        "path": { "cwd": "/", "root": "/" }, "cost": 0.0, "modelID": "m", "providerID": "p",
        "tokens": { "total": 110, "input": 100, "output": 10, "reasoning": 0, "cache": { "read": 0, "write": 0 } },
    });
    let fields = info.as_object_mut().unwrap();
    fields.extend(more.as_object().cloned().unwrap());
    message(info, id, parts)
}

pub(crate) fn answered(id: &str, parent: &str, text: &str) -> MessageWithParts {
    let parts = json!([{ "type": "text", "text": text }]);
    answer_parts(id, parent, json!({ "finish": "stop" }), parts)
}

pub(crate) fn summary(id: &str, parent: &str, text: &str) -> MessageWithParts {
    let parts = json!([{ "type": "text", "text": text }]);
    answer_parts(
        id,
        parent,
        json!({ "finish": "stop", "summary": true }),
        parts,
    )
}

pub(crate) fn failed_summary(id: &str, parent: &str) -> MessageWithParts {
    let error = json!({ "name": "UnknownError", "data": { "message": "no" } });
    let more = json!({ "finish": "error", "summary": true, "error": error });
    answer_parts(
        id,
        parent,
        more,
        json!([{ "type": "text", "text": "half a summ" }]),
    )
}
