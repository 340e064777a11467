//! A server behind streamable HTTP: each message of ours is a POST, its answer comes as JSON or as a stream of events.
//!
//! Not spoken: the stream that a server may offer for messages of its own accord (GET), and resuming of streams. The
//! older transport with two addresses is [`crate::transport::sse`].

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_files::sync::lock;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::error::McpError;
use crate::transport::pending::Pending;
use crate::transport::remote::Remote;
use crate::wire::{self, Id, Incoming, MAX_BYTES};
use outrigger_sse::Parser;

/// For messages whose answer nobody waits for.
const SHORT: Duration = Duration::from_secs(5);
const SESSION: &str = "mcp-session-id";
const PROTOCOL: &str = "mcp-protocol-version";

/// A remote server.
pub(crate) struct Http {
    target: Target,
    pending: Pending,
}

// All that a request needs, so that one can be sent from a task of its own.
struct Target {
    remote: Arc<Remote>,
    state: Mutex<Session>,
}

#[derive(Clone, Default)]
struct Session {
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

enum Body {
    Json(Response),
    Events(Response),
    Nothing,
}

impl Http {
    /// Nothing is sent yet.
    pub(crate) fn new(remote: Remote) -> Self {
        Self {
            target: Target {
                remote: Arc::new(remote),
                state: Mutex::default(),
            },
            pending: Pending::default(),
        }
    }

    pub(crate) fn pending(&self) -> &Pending {
        &self.pending
    }

    /// As [`crate::transport::stdio::Stdio::request`]. Every event of the answer's stream counts as progress.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: &Value,
        wait: Duration,
    ) -> Result<Value, McpError> {
        if let Some(closed) = self.pending.closed() {
            return Err(closed);
        }
        let id = self.pending.number();
        let mut params = params.clone();
        if method == "tools/call" {
            params["_meta"] = json!({"progressToken": id});
        }
        let mut given_up = GivenUp {
            target: Some(&self.target),
            id,
        };
        if method == "initialize" {
            given_up.target = None;
        }
        let late = |_| McpError::Timeout {
            server: self.target.remote.server.clone(),
            what: method.to_owned(),
            after: wait,
        };
        let deadline = Instant::now() + wait;
        let body = timeout_at(
            deadline,
            self.target.post(wire::request(id, method, &params)),
        )
        .await
        .map_err(late)?
        .inspect_err(|error| self.forget(error));
        let result = match body {
            Ok(Body::Json(response)) => timeout_at(deadline, self.json(response, id))
                .await
                .map_err(late)?,
            Ok(Body::Events(response)) => self.events(response, id, method, wait).await,
            Ok(Body::Nothing) => Err(self.target.remote.answer("it sent nothing")),
            Err(error) => Err(error),
        };
        if !matches!(result, Err(McpError::Timeout { .. })) {
            given_up.target = None;
        }
        result
    }

    /// Tells the server something.
    pub(crate) async fn notify(&self, method: &str) {
        let _ = tokio::time::timeout(SHORT, self.target.post(wire::notice(method, None))).await;
    }

    /// The version of the protocol that was agreed upon goes with every further message.
    pub(crate) fn agreed(&self, version: &str) {
        self.target.session().version = HeaderValue::try_from(version).ok();
    }

    /// Ends the session, if the server has given one.
    pub(crate) async fn close(&self, grace: Duration) {
        let session = self.target.session().clone();
        self.pending.close(&McpError::Closed {
            server: self.target.remote.server.clone(),
            cause: "was left".to_owned(),
        });
        if session.id.is_some() {
            let request = self
                .target
                .remote
                .client
                .delete(&self.target.remote.url)
                .headers(self.target.with(&session));
            let _ = tokio::time::timeout(grace, self.target.remote.send(request)).await;
        }
    }

    fn forget(&self, error: &McpError) {
        if matches!(error, McpError::SessionGone { .. }) {
            self.pending.close(error);
        }
    }

    async fn json(&self, mut response: Response, id: Id) -> Result<Value, McpError> {
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|e| self.target.remote.failed(&e))?
        {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_BYTES {
                return Err(self.target.remote.too_long());
            }
        }
        let messages =
            wire::read(&body).ok_or_else(|| self.target.remote.answer("it is no MCP message"))?;
        for message in messages {
            if let Some(result) = self.take(message, id) {
                return result;
            }
        }
        Err(self.target.remote.answer("the answer is not in it"))
    }

    async fn events(
        &self,
        mut response: Response,
        id: Id,
        method: &str,
        wait: Duration,
    ) -> Result<Value, McpError> {
        let (mut parser, mut events) = (Parser::new(MAX_BYTES), Vec::new());
        let mut deadline = Instant::now() + wait;
        loop {
            let chunk =
                timeout_at(deadline, response.chunk())
                    .await
                    .map_err(|_| McpError::Timeout {
                        server: self.target.remote.server.clone(),
                        what: method.to_owned(),
                        after: wait,
                    })?;
            let Some(chunk) = chunk.map_err(|e| self.target.remote.failed(&e))? else {
                return Err(self
                    .target
                    .remote
                    .answer("the stream ended before the answer"));
            };
            let fed = parser.feed(&chunk, &mut events);
            for event in events.drain(..) {
                deadline = Instant::now() + wait;
                for message in wire::read(event.data.as_bytes()).into_iter().flatten() {
                    if let Some(result) = self.take(message, id) {
                        return result;
                    }
                }
            }
            fed.map_err(|_| self.target.remote.too_long())?;
        }
    }

    fn take(&self, message: Incoming, wanted: Id) -> Option<Result<Value, McpError>> {
        match message {
            Incoming::Answer { id, result } if id == wanted => {
                return Some(result.map_err(|refusal| McpError::Refused {
                    server: self.target.remote.server.clone(),
                    code: refusal.code,
                    message: refusal.message,
                }));
            }
            Incoming::Notice { method, .. } if method == "notifications/tools/list_changed" => {
                self.pending.list_changed();
            }
            Incoming::Request { id, method } => self.target.send_later(wire::answer(&id, &method)),
            _ => {}
        }
        None
    }
}

struct GivenUp<'a> {
    target: Option<&'a Target>,
    id: Id,
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        if let Some(target) = self.target {
            target.send_later(wire::cancelled(self.id));
        }
    }
}

impl Target {
    async fn post(&self, message: String) -> Result<Body, McpError> {
        let session = self.session().clone();
        let request = self
            .remote
            .client
            .post(&self.remote.url)
            .headers(self.with(&session))
            .header(ACCEPT, "application/json, text/event-stream")
            .header(CONTENT_TYPE, "application/json")
            .body(message);
        let response = self.remote.send(request).await?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && session.id.is_some() {
            return Err(McpError::SessionGone {
                server: self.remote.server.clone(),
            });
        }
        if !status.is_success() {
            return Err(self.remote.refused(response).await);
        }
        if let Some(id) = response.headers().get(SESSION) {
            self.session().id = Some(id.clone());
        }
        let kind = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok());
        Ok(match kind.map(str::to_ascii_lowercase).as_deref() {
            Some(kind) if kind.starts_with("text/event-stream") => Body::Events(response),
            Some(kind) if kind.starts_with("application/json") => Body::Json(response),
            _ => Body::Nothing,
        })
    }

    // Nobody waits for it. Outside of a runtime (the host is going down) it is not sent.
    fn send_later(&self, message: String) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let request = self
            .remote
            .client
            .post(&self.remote.url)
            .headers(self.with(&self.session().clone()))
            .header(ACCEPT, "application/json, text/event-stream")
            .header(CONTENT_TYPE, "application/json")
            .timeout(SHORT)
            .body(message);
        let remote = Arc::clone(&self.remote);
        runtime.spawn(async move {
            let _ = remote.send(request).await;
        });
    }

    fn with(&self, session: &Session) -> HeaderMap {
        let mut headers = self.remote.headers.clone();
        if let Some(id) = &session.id {
            headers.insert(SESSION, id.clone());
        }
        if let Some(version) = &session.version {
            headers.insert(PROTOCOL, version.clone());
        }
        headers
    }

    fn session(&self) -> std::sync::MutexGuard<'_, Session> {
        lock(&self.state)
    }
}
