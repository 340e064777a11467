//! Messages and their responses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use crate::exchange::{Client, Exchange, Level, Pending};

/// Supported protocol versions, newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// Maximum characters of a client's name.
const MAX_NAME: usize = 100;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const NO_RESOURCE: i64 = -32002;

/// The caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The client's own name.
    pub client: String,
    /// Its connection.
    pub connection: u64,
}

/// The implementation behind the server.
pub trait Backend: Send + Sync + 'static {
    /// Returns usage instructions for the client's model.
    fn instructions(&self) -> String;
    /// Returns the tools, as in `tools/list`.
    fn tools<'a>(&'a self) -> BoxFuture<'a, Vec<Value>>;
    /// Calls a tool; returns the result of `tools/call`. `Err`: there is no such tool. The future is dropped if the call is
    /// cancelled.
    fn call<'a>(
        &'a self,
        exchange: &'a Exchange,
        tool: &'a str,
        arguments: Value,
    ) -> BoxFuture<'a, Result<Value, String>>;
    /// Returns the prompts, as in `prompts/list`.
    fn prompts<'a>(&'a self) -> BoxFuture<'a, Vec<Value>>;
    /// Expands a prompt; returns the result of `prompts/get`. `Err`: the reason.
    fn prompt<'a>(
        &'a self,
        name: &'a str,
        arguments: Value,
    ) -> BoxFuture<'a, Result<Value, String>>;

    /// Returns the resources, as in `resources/list`.
    fn resources<'a>(&'a self) -> BoxFuture<'a, Vec<Value>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Returns URI templates of further resources, as in `resources/templates/list`.
    fn templates(&self) -> Vec<Value> {
        Vec::new()
    }

    /// Reads a resource; returns the result of `resources/read`. `Err`: there is no such resource.
    fn read<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async move { Err(format!("there is no resource {uri}")) })
    }

    /// Returns URIs of resources as they change, from now on. `None`: changes are not reported.
    fn changes(&self) -> Option<BoxStream<'static, String>> {
        None
    }

    /// Completes an argument of a prompt or template; `reference` identifies it.
    fn complete<'a>(
        &'a self,
        _reference: &'a Value,
        _argument: &'a str,
        _begins: &'a str,
    ) -> BoxFuture<'a, Vec<String>> {
        Box::pin(std::future::ready(Vec::new()))
    }
}

/// Maximum number of completions.
const MAX_COMPLETIONS: usize = 100;

/// One connection.
pub struct Server {
    backend: Arc<dyn Backend>,
    connection: u64,
    client: Arc<Mutex<Client>>,
    // Our own requests.
    pending: Arc<Pending>,
    // Calls in progress, by the text of their identifier.
    running: Mutex<HashMap<String, Arc<Notify>>>,
}

impl Server {
    /// Creates a connection to a backend.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>, connection: u64) -> Self {
        Self {
            backend,
            connection,
            client: Arc::default(),
            pending: Arc::default(),
            running: Mutex::default(),
        }
    }

    /// Answers a message; `None` for one without a response. Messages that precede the response go to `out`.
    pub async fn answer(&self, message: Value, out: &mpsc::Sender<Value>) -> Option<Value> {
        let method = message["method"].as_str().map(str::to_owned);
        let id = message
            .get("id")
            .filter(|id| id.is_string() || id.is_number());
        let (Some(method), Some(id)) = (method.clone(), id.cloned()) else {
            if let Some(method) = method {
                self.hear(&method, &message["params"]);
                return None;
            }
            let is_answer = message.get("result").is_some() || message.get("error").is_some();
            if is_answer {
                self.pending.answered(&message);
            }
            let wrong = || error(&Value::Null, INVALID_REQUEST, "it is not an MCP message");
            return (!is_answer).then(wrong);
        };
        let cancelled = Arc::new(Notify::new());
        let key = id.to_string();
        self.running().insert(key.clone(), Arc::clone(&cancelled));
        let params = message.get("params").cloned().unwrap_or_else(|| json!({}));
        let answered = tokio::select! {
            result = self.request(&method, params, out) => Some(result),
            () = cancelled.notified() => None,
        };
        self.running().remove(&key);
        Some(match answered? {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err((code, text)) => error(&id, code, &text),
        })
    }

    async fn request(
        &self,
        method: &str,
        params: Value,
        out: &mpsc::Sender<Value>,
    ) -> Result<Value, (i64, String)> {
        let wrong = |text: String| (INVALID_PARAMS, text);
        let name = || {
            params["name"]
                .as_str()
                .map(str::to_owned)
                .ok_or_else(|| wrong("`name` is missing".to_owned()))
        };
        let arguments = || match &params["arguments"] {
            Value::Null => json!({}),
            arguments => arguments.clone(),
        };
        match method {
            "initialize" => Ok(self.initialize(&params)),
            "ping" => Ok(json!({})),
            "logging/setLevel" => {
                let level = params["level"]
                    .as_str()
                    .and_then(Level::parse)
                    .ok_or_else(|| wrong("`level` is not a level".to_owned()))?;
                self.client().level = level;
                Ok(json!({}))
            }
            "tools/list" => Ok(json!({"tools": self.backend.tools().await})),
            "tools/call" => {
                let exchange = self.exchange(&params, out);
                let call = self.backend.call(&exchange, &name()?, arguments()).await;
                call.map_err(wrong)
            }
            "prompts/list" => Ok(json!({"prompts": self.backend.prompts().await})),
            "prompts/get" => {
                let prompt = self.backend.prompt(&name()?, arguments()).await;
                prompt.map_err(wrong)
            }
            "completion/complete" => Ok(self.complete(&params).await),
            "resources/list" => Ok(json!({"resources": self.backend.resources().await})),
            "resources/templates/list" => {
                Ok(json!({"resourceTemplates": self.backend.templates()}))
            }
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
                self.resource(method, &params).await
            }
            _ => Err((METHOD_NOT_FOUND, format!("Method not found: {method}"))),
        }
    }

    fn initialize(&self, params: &Value) -> Value {
        let name: String = params
            .pointer("/clientInfo/name")
            .and_then(Value::as_str)
            .unwrap_or("a client")
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .take(MAX_NAME)
            .collect();
        {
            let mut client = self.client();
            client.name = name;
            client.capabilities = params["capabilities"].clone();
        }
        let subscribe = self.backend.changes().is_some();
        let wanted = params["protocolVersion"].as_str().unwrap_or_default();
        let known = VERSIONS.iter().find(|version| **version == wanted);
        json!({
            "protocolVersion": known.unwrap_or(&VERSIONS[0]),
            "capabilities": {"tools": {}, "prompts": {}, "resources": {"subscribe": subscribe}, "completions": {}, "logging": {}},
            "serverInfo": {"name": "outrigger", "version": env!("CARGO_PKG_VERSION")},
            "instructions": self.backend.instructions(),
        })
    }

    async fn complete(&self, params: &Value) -> Value {
        let text = |pointer: &str| params.pointer(pointer).and_then(Value::as_str);
        let argument = text("/argument/name").unwrap_or_default();
        let begins = text("/argument/value").unwrap_or_default();
        let found = self.backend.complete(&params["ref"], argument, begins);
        let mut values = found.await;
        let total = values.len();
        values.truncate(MAX_COMPLETIONS);
        let has_more = total > values.len();
        json!({"completion": {"values": values, "total": total, "hasMore": has_more}})
    }

    async fn resource(&self, method: &str, params: &Value) -> Result<Value, (i64, String)> {
        let uri = params["uri"]
            .as_str()
            .ok_or_else(|| (INVALID_PARAMS, "`uri` is missing".to_owned()))?;
        if method == "resources/unsubscribe" {
            self.client().unsubscribe(uri);
            return Ok(json!({}));
        }
        let read = self
            .backend
            .read(uri)
            .await
            .map_err(|reason| (NO_RESOURCE, reason))?;
        if method == "resources/read" {
            return Ok(read);
        }
        if self.client().subscribe(uri) {
            Ok(json!({}))
        } else {
            Err((INVALID_PARAMS, "too many subscriptions".to_owned()))
        }
    }

    /// Returns change notifications for the client, from now on, as an endless stream.
    pub fn updates(&self) -> BoxStream<'static, Value> {
        let Some(changes) = self.backend.changes() else {
            return futures_util::stream::pending().boxed();
        };
        let client = Arc::clone(&self.client);
        let updates = changes.filter_map(move |uri| {
            let client = client.lock().unwrap_or_else(PoisonError::into_inner);
            let wants = client.wants(&uri);
            let method = "notifications/resources/updated";
            let update = json!({"jsonrpc": "2.0", "method": method, "params": {"uri": uri}});
            std::future::ready(wants.then_some(update))
        });
        updates.boxed()
    }

    /// Handles a notification, such as a cancellation.
    fn hear(&self, method: &str, params: &Value) {
        if method == "notifications/cancelled"
            && let Some(cancelled) = self.running().get(&params["requestId"].to_string())
        {
            cancelled.notify_one();
        }
    }

    fn exchange(&self, params: &Value, out: &mpsc::Sender<Value>) -> Exchange {
        let token = params.pointer("/_meta/progressToken");
        Exchange {
            caller: Caller {
                client: self.client().name.clone(),
                connection: self.connection,
            },
            client: Arc::clone(&self.client),
            pending: Arc::clone(&self.pending),
            token: token.filter(|it| it.is_string() || it.is_number()).cloned(),
            out: out.clone(),
        }
    }

    fn client(&self) -> MutexGuard<'_, Client> {
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

    /// A test backend: reports the caller, hangs, asks the client's user or counts, depending on the tool.
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
            exchange: &'a Exchange,
            tool: &'a str,
            arguments: Value,
        ) -> BoxFuture<'a, Result<Value, String>> {
            Box::pin(async move {
                match tool {
                    "echo" => {
                        let text = format!("{} {arguments}", exchange.caller().client);
                        Ok(json!({"content": [{"type": "text", "text": text}]}))
                    }
                    "hang" => std::future::pending().await,
                    "asks" => {
                        exchange.progress(1, Some(2), Some("half"));
                        exchange.log(Level::Debug, "echo", json!("not wanted"));
                        exchange.log(Level::Warning, "echo", json!("careful"));
                        let answer = exchange.elicit(json!({"message": "Who?"})).await;
                        let text = answer.map_or_else(|reason| reason, |it| it.to_string());
                        Ok(json!({"content": [{"type": "text", "text": text}]}))
                    }
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
            let answer = server.answer(message, &nowhere()).await;
            lines.push(answer.map_or_else(|| "-".to_owned(), |answer| answer.to_string()));
        }
        lines[0] = lines[0].replace(env!("CARGO_PKG_VERSION"), "VERSION");
        insta::assert_snapshot!(lines.join("\n"), @r#"
        {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{},"prompts":{},"resources":{"subscribe":false},"completions":{},"logging":{}},"serverInfo":{"name":"outrigger","version":"VERSION"},"instructions":"Echoes."}}
        -
        {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}}
        {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"other  {\"a\":1}"}]}}
        {"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"there is no tool none"}}
        {"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"`name` is missing"}}
        {"jsonrpc":"2.0","id":6,"error":{"code":-32601,"message":"Method not found: other/method"}}
        -
        {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"it is not an MCP message"}}
        "#);
    }

    #[tokio::test]
    async fn a_call_that_is_given_up_has_no_answer() {
        let server = Server::new(Arc::new(Echo), 1);
        let nowhere = nowhere();
        let call = server.answer(request(1, "tools/call", json!({"name": "hang"})), &nowhere);
        let cancel = json!({"method": "notifications/cancelled", "params": {"requestId": 1}});
        let (answer, _) = tokio::join!(call, server.answer(cancel, &nowhere));
        assert_eq!(answer, None);
    }

    /// Returns a channel without a reader.
    fn nowhere() -> mpsc::Sender<Value> {
        mpsc::channel(1).0
    }

    #[tokio::test]
    async fn a_call_reports_and_asks_what_the_client_offers() {
        let server = Server::new(Arc::new(Echo), 1);
        let (out, mut sent) = mpsc::channel(8);
        let asks = |meta: Value| request(2, "tools/call", json!({"name": "asks", "_meta": meta}));
        let text = |answer: Option<Value>| answer.unwrap()["result"]["content"][0]["text"].take();
        let refused = server.answer(asks(json!({})), &out).await;
        assert_eq!(text(refused), "the client does not offer elicitation");
        let offers = json!({"capabilities": {"elicitation": {}}});
        server.answer(request(1, "initialize", offers), &out).await;
        let call = server.answer(asks(json!({"progressToken": 7})), &out);
        let client = async {
            let mut lines = Vec::new();
            loop {
                let message = sent.recv().await.unwrap();
                lines.push(message.to_string());
                if message["method"] == "elicitation/create" {
                    let id = &message["id"];
                    let answer =
                        json!({"jsonrpc": "2.0", "id": id, "result": {"action": "accept"}});
                    assert_eq!(server.answer(answer, &out).await, None);
                    return lines;
                }
            }
        };
        let (answer, lines) = tokio::join!(call, client);
        assert_eq!(text(answer), r#"{"action":"accept"}"#);
        insta::assert_snapshot!(lines.join("\n"), @r#"
        {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"echo","data":"careful"}}
        {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1,"total":2,"message":"half"}}
        {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"echo","data":"careful"}}
        {"jsonrpc":"2.0","id":"outrigger-0","method":"elicitation/create","params":{"message":"Who?"}}
        "#);
        // An unexpected message is ignored.
        let late = json!({"jsonrpc": "2.0", "id": "outrigger-0", "result": {}});
        assert_eq!(server.answer(late, &out).await, None);
    }
}
