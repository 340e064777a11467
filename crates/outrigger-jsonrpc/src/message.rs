//! A JSON-RPC 2.0 message.

use serde_json::{Map, Value, json};

/// An error on the wire.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct RpcError {
    /// A code of JSON-RPC or of a protocol above it.
    pub code: i64,
    /// What failed, for users.
    pub message: String,
    /// Further data, for programs.
    pub data: Option<Box<Value>>,
}

impl RpcError {
    /// The message is not JSON.
    pub const PARSE: i64 = -32700;
    /// The message is JSON, but not a request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// There is no such method.
    pub const NO_METHOD: i64 = -32601;
    /// The parameters are invalid.
    pub const INVALID_PARAMS: i64 = -32602;
    /// An internal error.
    pub const INTERNAL: i64 = -32603;
    /// The caller has cancelled the request.
    pub const CANCELLED: i64 = -32800;

    /// Creates an error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// Creates the error for an unknown method.
    #[must_use]
    pub fn no_method(method: &str) -> Self {
        let mut error = Self::new(Self::NO_METHOD, format!("Method not found: {method}"));
        error.data = Some(Box::new(json!({ "method": method })));
        error
    }

    /// Creates the error for invalid parameters.
    pub fn params(why: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, why)
    }

    fn read(error: &Map<String, Value>) -> Self {
        let message = error.get("message").and_then(Value::as_str);
        Self {
            code: error.get("code").and_then(Value::as_i64).unwrap_or(0),
            message: message.unwrap_or("unknown error").to_owned(),
            data: error.get("data").cloned().map(Box::new),
        }
    }
}

/// A message from the other side.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// A request, whose identifier is returned unchanged.
    Request {
        /// A number or a text.
        id: Value,
        /// The method.
        method: String,
        /// The parameters.
        params: Value,
    },
    /// A notification.
    Notice {
        /// The method.
        method: String,
        /// The parameters.
        params: Value,
    },
    /// A response to a request of ours.
    Answer {
        /// Our number.
        id: u64,
        /// The result.
        result: Result<Value, RpcError>,
    },
}

impl Message {
    /// Parses a message from one line.
    ///
    /// # Errors
    /// Text that is not JSON, or JSON that is not a message, with the identifier if there is one.
    pub fn read(line: &[u8]) -> Result<Self, (Value, RpcError)> {
        let message: Value = serde_json::from_slice(line).map_err(|error| {
            let why = format!("this line is not JSON: {error}");
            (Value::Null, RpcError::new(RpcError::PARSE, why))
        })?;
        let refuse = |id: Value, why: &str| (id, RpcError::new(RpcError::INVALID_REQUEST, why));
        let Value::Object(mut message) = message else {
            return Err(refuse(Value::Null, "a message is an object"));
        };
        let id = message.remove("id");
        match message.remove("method") {
            Some(Value::String(method)) => {
                let params = message.remove("params").unwrap_or_default();
                Ok(match id {
                    Some(id @ (Value::Number(_) | Value::String(_))) => {
                        Self::Request { id, method, params }
                    }
                    None => Self::Notice { method, params },
                    Some(_) => {
                        return Err(refuse(Value::Null, "`id` is a number or a text"));
                    }
                })
            }
            Some(_) => Err(refuse(id.unwrap_or_default(), "`method` is a text")),
            None => {
                let result = match (message.remove("result"), message.remove("error")) {
                    (_, Some(Value::Object(error))) => Err(RpcError::read(&error)),
                    (Some(result), _) => Ok(result),
                    _ => {
                        let why = "neither `method` nor `result` nor `error`";
                        return Err(refuse(id.unwrap_or_default(), why));
                    }
                };
                // Ours are numbers; a response to anything else is ignored.
                let id = id.as_ref().and_then(Value::as_u64).unwrap_or(u64::MAX);
                Ok(Self::Answer { id, result })
            }
        }
    }
}

pub(crate) fn request(id: u64, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

pub(crate) fn notice(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
}

pub(crate) fn answer(id: &Value, result: Result<Value, RpcError>) -> String {
    match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => {
            let mut shown = json!({ "code": error.code, "message": error.message });
            if let Some(data) = error.data {
                shown["data"] = *data;
            }
            json!({ "jsonrpc": "2.0", "id": id, "error": shown })
        }
    }
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_refused_with_its_identifier() {
        let shown = |line: &str| match Message::read(line.as_bytes()) {
            Ok(message) => format!("{message:?}"),
            Err((id, error)) => format!("{id} {}", error.code),
        };
        for (line, want) in [
            ("nonsense", "null -32700"),
            ("[]", "null -32600"),
            ("{\"id\":7}", "7 -32600"),
            ("{\"id\":7,\"method\":1}", "7 -32600"),
            ("{\"id\":{},\"method\":\"a\"}", "null -32600"),
            (
                "{\"method\":\"a\"}",
                "Notice { method: \"a\", params: Null }",
            ),
            (
                "{\"id\":\"x\",\"method\":\"a\",\"params\":1}",
                "Request { id: String(\"x\"), method: \"a\", params: Number(1) }",
            ),
            (
                "{\"id\":3,\"result\":null}",
                "Answer { id: 3, result: Ok(Null) }",
            ),
        ] {
            assert_eq!(shown(line), want, "{line}");
        }
    }
}
