//! JSON-RPC 2.0, as far as MCP uses it.

use serde_json::{Map, Value, json};

/// The protocol version that we request; a server may answer with an older one.
pub(crate) const VERSION: &str = "2025-11-25";

/// Maximum bytes of a message. Screenshots come in messages of some megabytes.
pub(crate) const MAX_BYTES: usize = 32 * 1024 * 1024;

/// Request identifiers are assigned by us, so they are numbers.
pub(crate) type Id = u64;

/// A message from a server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Incoming {
    /// The response to a request of ours.
    Answer {
        id: Id,
        result: Result<Value, RpcError>,
    },
    /// A request of the server, whose identifier is returned unchanged.
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    /// A notification.
    Notice { method: String, params: Value },
}

/// A JSON-RPC error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
}

/// Parses the messages in a text; `None` if it contains none. Older versions of the protocol allow several in
/// one array.
pub(crate) fn read(bytes: &[u8]) -> Option<Vec<Incoming>> {
    match serde_json::from_slice(bytes).ok()? {
        Value::Array(list) => list.into_iter().map(one).collect(),
        single => Some(vec![one(single)?]),
    }
}

fn one(message: Value) -> Option<Incoming> {
    let Value::Object(mut message) = message else {
        return None;
    };
    let id = message.remove("id").filter(|id| !id.is_null());
    if let Some(Value::String(method)) = message.remove("method") {
        let params = message.remove("params").unwrap_or_default();
        return Some(match id {
            Some(id) => Incoming::Request { id, method, params },
            None => Incoming::Notice { method, params },
        });
    }
    // Some servers return numbers as strings.
    let id = match id? {
        Value::Number(number) => number.as_u64()?,
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    };
    let result = match (message.remove("result"), message.remove("error")) {
        (_, Some(Value::Object(error))) => Err(refusal(&error)),
        (Some(result), _) => Ok(result),
        _ => return None,
    };
    Some(Incoming::Answer { id, result })
}

fn refusal(error: &Map<String, Value>) -> RpcError {
    let message = error.get("message").and_then(Value::as_str);
    RpcError {
        code: error
            .get("code")
            .and_then(Value::as_i64)
            .unwrap_or_default(),
        message: message.unwrap_or("unknown error").to_owned(),
    }
}

/// Creates a request.
pub(crate) fn request(id: Id, method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// Creates a notification.
pub(crate) fn notice(method: &str, params: Option<&Value>) -> String {
    match params {
        Some(params) => json!({"jsonrpc": "2.0", "method": method, "params": params}),
        None => json!({"jsonrpc": "2.0", "method": method}),
    }
    .to_string()
}

/// Creates the notification that a request was cancelled.
pub(crate) fn cancelled(id: Id) -> String {
    notice(
        "notifications/cancelled",
        Some(&json!({"requestId": id, "reason": "the call was given up"})),
    )
}

/// Returns the parameters of the first request: our identity, and what a server may request (`requests`).
pub(crate) fn hello() -> Value {
    json!({
        "protocolVersion": VERSION,
        "capabilities": {"roots": {}, "sampling": {}, "elicitation": {"form": {}}},
        "clientInfo": {"name": "outrigger", "version": env!("CARGO_PKG_VERSION")},
    })
}

/// Returns our reply to a request that needs no one's answer: only `ping` is supported.
pub(crate) fn answer(id: &Value, method: &str) -> String {
    match method {
        "ping" => result(id, &json!({})),
        _ => error(id, -32601, &format!("Method not found: {method}")),
    }
}

pub(crate) fn result(id: &Value, result: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
}

pub(crate) fn error(id: &Value, code: i64, message: &str) -> String {
    let error = json!({"code": code, "message": message});
    json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string()
}

/// Returns the request whose progress a notification reports; the token is the request's identifier.
pub(crate) fn progress_of(method: &str, params: &Value) -> Option<Id> {
    (method == "notifications/progress").then(|| params.get("progressToken")?.as_u64())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_distinguished_and_the_rest_is_none() {
        let shown = |text: &str| match read(text.as_bytes()) {
            None => "none".to_owned(),
            Some(list) => format!("{list:?}"),
        };
        insta::assert_snapshot!(shown(r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#), @r#"[Answer { id: 1, result: Ok(Object {"a": Number(1)}) }]"#);
        insta::assert_snapshot!(shown(r#"{"id":"7","error":{"code":-1,"message":"no"}}"#), @r#"[Answer { id: 7, result: Err(RpcError { code: -1, message: "no" }) }]"#);
        insta::assert_snapshot!(shown(r#"{"id":"x","method":"ping"}"#), @r#"[Request { id: String("x"), method: "ping", params: Null }]"#);
        insta::assert_snapshot!(shown(r#"[{"method":"a"},{"id":2,"result":null}]"#), @r#"[Notice { method: "a", params: Null }, Answer { id: 2, result: Ok(Null) }]"#);
        for junk in [
            "",
            "hello",
            "1",
            "{}",
            r#"{"id":1}"#,
            r#"{"id":[],"result":1}"#,
            "[1]",
            "{",
        ] {
            assert_eq!(shown(junk), "none", "{junk}");
        }
    }

    #[test]
    fn ping_is_answered_and_the_rest_is_refused() {
        assert_eq!(
            answer(&"a".into(), "ping"),
            r#"{"jsonrpc":"2.0","id":"a","result":{}}"#
        );
        assert!(answer(&1.into(), "tasks/list").contains("-32601"));
    }
}
