//! JSON-RPC lines to another vendor's agent.

use outrigger_jsonrpc::RpcError;
use serde_json::{Value, json};

use crate::step::Step;

/// Creates a request.
pub(crate) fn request(id: u64, method: &str, params: &Value) -> Step {
    send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

/// Creates a notification.
pub(crate) fn notice(method: &str, params: &Value) -> Step {
    send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}

/// Creates the response to a request of the agent.
pub(crate) fn answer(id: &Value, result: &Value) -> Step {
    send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

/// Creates the error for an unknown method of the agent.
pub(crate) fn no_method(id: &Value, method: &str) -> Step {
    let message = format!("{method} is not supported");
    let error = json!({ "code": RpcError::NO_METHOD, "message": message });
    send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }))
}

fn send(value: &Value) -> Step {
    Step::Send(value.to_string())
}
