//! Lines for programs.

use outrigger_protocol::id::SessionId;
use serde_json::{Value, json};

/// One line of `--format json`.
pub(crate) fn json_line(kind: &str, session: Option<&SessionId>, body: Value) -> String {
    let mut line = json!({ "type": kind, "timestamp": outrigger_stdx::clock::now_ms() });
    if let (Some(line), Value::Object(body)) = (line.as_object_mut(), body) {
        line.extend(session.map(|id| ("sessionID".to_owned(), json!(id))));
        line.extend(body);
    }
    format!("{line}\n")
}
