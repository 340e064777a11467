//! Errors of the agent in the protocol's form.

use outrigger_client::ClientError;
use outrigger_jsonrpc::RpcError;
use outrigger_protocol::message::NamedError;
use serde_json::json;

/// A login is required.
const AUTH_REQUIRED: i64 = -32000;
/// Not found.
const NOT_FOUND: i64 = -32002;

/// Converts a request that the agent refused.
pub(crate) fn refused(error: &ClientError) -> RpcError {
    let code = match error.code() {
        "agent.no_session" => NOT_FOUND,
        code if is_login(code) => AUTH_REQUIRED,
        _ => RpcError::INTERNAL,
    };
    let mut shown = RpcError::new(code, error.message());
    let hint = error.hint();
    shown.data = Some(Box::new(match hint {
        Some(hint) => json!({ "code": error.code(), "hint": hint }),
        None => json!({ "code": error.code() }),
    }));
    if let Some(hint) = hint {
        shown.message = format!("{} ({hint})", shown.message);
    }
    shown
}

fn is_login(code: &str) -> bool {
    [
        "model.no_key",
        "model.auth",
        "model.login",
        "model.key_withheld",
    ]
    .contains(&code)
}

/// Converts a turn that failed.
pub(crate) fn failed(error: &NamedError) -> RpcError {
    let code = match error.name.as_str() {
        "ProviderAuthError" => AUTH_REQUIRED,
        _ => RpcError::INTERNAL,
    };
    let mut shown = RpcError::new(code, error.message());
    shown.data = Some(Box::new(json!({ "name": error.name })));
    shown
}
