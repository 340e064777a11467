//! Messages and their answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// The versions of the protocol that are spoken, the newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// Characters of a client's name that are kept.
const MAX_NAME: usize = 100;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// What the client calls itself.
    pub client: String,
    /// Its connection.
    pub connection: u64,
}

/// What is offered.
pub trait Backend: Send + Sync + 'static {
    /// How to use it, for the client's model.
    fn instructions(&self) -> String;
    /// The tools, as `tools/list` has them.
    fn tools<'a>(&'a self) -> BoxFuture<'a, Vec<Value>>;
    /// Calls a tool: the result of `tools/call`. `Err`: there is no such tool. The future is dropped when the call is cancelled.
    fn call<'a>(
        &'a self,
        caller: &'a Caller,
        tool: &'a str,
        arguments: Value,
    ) -> BoxFuture<'a, Result<Value, String>>;
    /// The prompts, as `prompts/list` has them.
    fn prompts<'a>(&'a self) -> BoxFuture<'a, Vec<Value>>;
    /// Fills in a prompt: the result of `prompts/get`. `Err`: why not.
    fn prompt<'a>(
        &'a self,
        name: &'a str,
        arguments: Value,
    ) -> BoxFuture<'a, Result<Value, String>>;
}

/// One connection.
pub struct Server {
    backend: Arc<dyn Backend>,
    connection: u64,
    client: Mutex<String>,
    // Calls under way, by the text of their identifier.
    running: Mutex<HashMap<String, Arc<Notify>>>,
}

impl Server {
    /// A connection to what is offered.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>, connection: u64) -> Self {
        Self {
            backend,
            connection,
            client: Mutex::new("a client".to_owned()),
            running: Mutex::default(),
        }
    }

    /// Answers a message; `None` for one that wants no answer.
    pub async fn answer(&self, message: Value) -> Option<Value> {
        let method = message["method"].as_str().map(str::to_owned);
        let id = message
            .get("id")
            .filter(|id| id.is_string() || id.is_number());
        let (Some(method), Some(id)) = (method.clone(), id.cloned()) else {
            if let Some(method) = method {
                self.hear(&method, &message["params"]);
                return None;
            }
            // An answer to a request that we never make is passed over.
            let is_answer = message.get("result").is_some() || message.get("error").is_some();
            let wrong = || error(&Value::Null, INVALID_REQUEST, "it is no MCP message");
            return (!is_answer).then(wrong);
        };
        let cancelled = Arc::new(Notify::new());
        let key = id.to_string();
        self.running().insert(key.clone(), Arc::clone(&cancelled));
        let params = message.get("params").cloned().unwrap_or_else(|| json!({}));
        let answered = tokio::select! {
            result = self.request(&method, params) => Some(result),
            () = cancelled.notified() => None,
        };
        self.running().remove(&key);
        Some(match answered? {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err((code, text)) => error(&id, code, &text),
        })
    }

    async fn request(&self, method: &str, params: Value) -> Result<Value, (i64, String)> {
        let wrong = |text: String| (INVALID_PARAMS, text);
        let name = || {
            let name = params["name"].as_str().map(str::to_owned);
            name.ok_or_else(|| wrong("`name` is missing".to_owned()))
        };
        let arguments = || match &params["arguments"] {
            Value::Null => json!({}),
            arguments => arguments.clone(),
        };
        match method {
            "initialize" => Ok(self.initialize(&params)),
            // Nothing is logged to the client, at whatever level it wants that.
            "ping" | "logging/setLevel" => Ok(json!({})),
            "tools/list" => Ok(json!({"tools": self.backend.tools().await})),
            "tools/call" => {
                let caller = self.caller();
                let call = self.backend.call(&caller, &name()?, arguments()).await;
                call.map_err(wrong)
            }
            "prompts/list" => Ok(json!({"prompts": self.backend.prompts().await})),
            "prompts/get" => {
                let prompt = self.backend.prompt(&name()?, arguments()).await;
                prompt.map_err(wrong)
            }
            "completion/complete" => {
                Ok(json!({"completion": {"values": [], "total": 0, "hasMore": false}}))
            }
            "resources/list" => Ok(json!({"resources": []})),
            "resources/templates/list" => Ok(json!({"resourceTemplates": []})),
            _ => Err((METHOD_NOT_FOUND, format!("Method not found: {method}"))),
        }
    }

    fn initialize(&self, params: &Value) -> Value {
        let name = params.pointer("/clientInfo/name").and_then(Value::as_str);
        let name: String = name
            .unwrap_or("a client")
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .take(MAX_NAME)
            .collect();
        *self.client() = name;
        let wanted = params["protocolVersion"].as_str().unwrap_or_default();
        let known = VERSIONS.iter().find(|version| **version == wanted);
        json!({
            "protocolVersion": known.unwrap_or(&VERSIONS[0]),
            "capabilities": {"tools": {}, "prompts": {}, "resources": {}, "completions": {}, "logging": {}},
            "serverInfo": {"name": "outrigger", "version": env!("CARGO_PKG_VERSION")},
            "instructions": self.backend.instructions(),
        })
    }

    /// Takes a notice: that a call is given up.
    fn hear(&self, method: &str, params: &Value) {
        if method == "notifications/cancelled"
            && let Some(cancelled) = self.running().get(&params["requestId"].to_string())
        {
            cancelled.notify_one();
        }
    }

    fn caller(&self) -> Caller {
        Caller {
            client: self.client().clone(),
            connection: self.connection,
        }
    }

    fn client(&self) -> MutexGuard<'_, String> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, Arc<Notify>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn error(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Says who called, and hangs where that is called.
    pub(crate) struct Echo;

    impl Backend for Echo {
        fn instructions(&self) -> String {
            "Echoes.".to_owned()
        }

        fn tools<'a>(&'a self) -> BoxFuture<'a, Vec<Value>> {
            Box::pin(async { vec![json!({"name": "echo", "inputSchema": {"type": "object"}})] })
        }

        fn call<'a>(
            &'a self,
            caller: &'a Caller,
            tool: &'a str,
            arguments: Value,
        ) -> BoxFuture<'a, Result<Value, String>> {
            Box::pin(async move {
                match tool {
                    "echo" => {
                        let text = format!("{} {arguments}", caller.client);
                        Ok(json!({"content": [{"type": "text", "text": text}]}))
                    }
                    "hang" => std::future::pending().await,
                    _ => Err(format!("there is no tool {tool}")),
                }
            })
        }

        fn prompts<'a>(&'a self) -> BoxFuture<'a, Vec<Value>> {
            Box::pin(async { Vec::new() })
        }

        fn prompt<'a>(
            &'a self,
            name: &'a str,
            _arguments: Value,
        ) -> BoxFuture<'a, Result<Value, String>> {
            Box::pin(async move { Err(format!("there is no prompt {name}")) })
        }
    }

    pub(crate) fn request(id: u64, method: &str, params: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    }

    #[tokio::test]
    async fn requests_are_answered_and_notices_are_not() {
        let server = Server::new(Arc::new(Echo), 1);
        let hello = json!({"protocolVersion": "2025-03-26", "clientInfo": {"name": "other\u{1b}"}});
        let mut lines = Vec::new();
        for message in [
            request(1, "initialize", hello),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            request(2, "tools/list", json!({})),
            request(
                3,
                "tools/call",
                json!({"name": "echo", "arguments": {"a": 1}}),
            ),
            request(4, "tools/call", json!({"name": "none"})),
            request(5, "tools/call", json!({})),
            request(6, "other/method", json!({})),
            json!({"jsonrpc": "2.0", "id": 7, "result": {}}),
            json!([]),
        ] {
            let answer = server.answer(message).await;
            lines.push(answer.map_or_else(|| "-".to_owned(), |answer| answer.to_string()));
        }
        lines[0] = lines[0].replace(env!("CARGO_PKG_VERSION"), "VERSION");
        insta::assert_snapshot!(lines.join("\n"), @r#"
        {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{},"prompts":{},"resources":{},"completions":{},"logging":{}},"serverInfo":{"name":"outrigger","version":"VERSION"},"instructions":"Echoes."}}
        -
        {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}}
        {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"other  {\"a\":1}"}]}}
        {"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"there is no tool none"}}
        {"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"`name` is missing"}}
        {"jsonrpc":"2.0","id":6,"error":{"code":-32601,"message":"Method not found: other/method"}}
        -
        {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"it is no MCP message"}}
        "#);
    }

    #[tokio::test]
    async fn a_call_that_is_given_up_has_no_answer() {
        let server = Server::new(Arc::new(Echo), 1);
        let call = server.answer(request(1, "tools/call", json!({"name": "hang"})));
        let cancel = json!({"method": "notifications/cancelled", "params": {"requestId": 1}});
        let (answer, _) = tokio::join!(call, server.answer(cancel));
        assert_eq!(answer, None);
    }
}
