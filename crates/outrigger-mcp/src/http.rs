//! A server behind streamable HTTP: each message of ours is a POST, its answer comes as JSON or as a stream of events.
//!
//! Not spoken: the stream that a server may offer for messages of its own accord (GET), resuming of streams, OAuth, and
//! the older transport with two addresses.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::error::McpError;
use crate::pending::Pending;
use crate::secret::Secrets;
use crate::sse::Events;
use crate::wire::{self, Id, Incoming, MOST_BYTES};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// For messages whose answer nobody waits for.
const SHORT: Duration = Duration::from_secs(5);
const SESSION: &str = "mcp-session-id";
const PROTOCOL: &str = "mcp-protocol-version";
/// Of an error page.
const MOST_QUOTED: usize = 300;

/// A remote server.
pub(crate) struct Http {
    target: Target,
    pending: Pending,
}

// All that a request needs, so that one can be sent from a task of its own.
struct Target {
    server: String,
    client: Client,
    url: String,
    headers: HeaderMap,
    secrets: Secrets,
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
    ///
    /// # Errors
    /// [`McpError::Config`] for a header that is none, [`McpError::Http`] without a client.
    pub(crate) fn new(
        server: &str,
        url: &str,
        headers: &BTreeMap<String, String>,
    ) -> Result<Self, McpError> {
        let mut sent = HeaderMap::new();
        for (name, value) in headers {
            let wrong = || McpError::Config {
                server: server.to_owned(),
                reason: format!("`headers.{name}` is no valid header"),
            };
            let name = HeaderName::try_from(name).map_err(|_| wrong())?;
            let mut value = HeaderValue::try_from(value).map_err(|_| wrong())?;
            value.set_sensitive(true);
            sent.insert(name, value);
        }
        let client = client(url).map_err(|error| McpError::Http {
            server: server.to_owned(),
            reason: error.to_string(),
        })?;
        Ok(Self {
            target: Target {
                server: server.to_owned(),
                client,
                url: url.to_owned(),
                headers: sent,
                secrets: Secrets::new(headers.values()),
                state: Mutex::default(),
            },
            pending: Pending::default(),
        })
    }

    pub(crate) fn pending(&self) -> &Pending {
        &self.pending
    }

    /// As [`crate::stdio::Stdio::request`]. Every event of the answer's stream counts as progress.
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
            server: self.target.server.clone(),
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
            Ok(Body::Nothing) => Err(self.target.answer("it sent nothing")),
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
            server: self.target.server.clone(),
            cause: "was left".to_owned(),
        });
        if session.id.is_some() {
            let request = self
                .target
                .client
                .delete(&self.target.url)
                .headers(self.target.with(&session));
            let _ = tokio::time::timeout(grace, request.send()).await;
        }
    }

    fn forget(&self, error: &McpError) {
        if matches!(error, McpError::SessionGone { .. }) {
            self.pending.close(error);
        }
    }

    async fn json(&self, mut response: Response, id: Id) -> Result<Value, McpError> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| self.target.failed(&e))? {
            body.extend_from_slice(&chunk);
            if body.len() > MOST_BYTES {
                return Err(self.target.too_long());
            }
        }
        let messages =
            wire::read(&body).ok_or_else(|| self.target.answer("it is no MCP message"))?;
        for message in messages {
            if let Some(result) = self.take(message, id) {
                return result;
            }
        }
        Err(self.target.answer("the answer is not in it"))
    }

    async fn events(
        &self,
        mut response: Response,
        id: Id,
        method: &str,
        wait: Duration,
    ) -> Result<Value, McpError> {
        let mut events = Events::default();
        let mut deadline = Instant::now() + wait;
        loop {
            let chunk =
                timeout_at(deadline, response.chunk())
                    .await
                    .map_err(|_| McpError::Timeout {
                        server: self.target.server.clone(),
                        what: method.to_owned(),
                        after: wait,
                    })?;
            let Some(chunk) = chunk.map_err(|e| self.target.failed(&e))? else {
                return Err(self.target.answer("the stream ended before the answer"));
            };
            for data in events.feed(&chunk) {
                deadline = Instant::now() + wait;
                for message in wire::read(data.as_bytes()).into_iter().flatten() {
                    if let Some(result) = self.take(message, id) {
                        return result;
                    }
                }
            }
            if events.held() > MOST_BYTES {
                return Err(self.target.too_long());
            }
        }
    }

    fn take(&self, message: Incoming, wanted: Id) -> Option<Result<Value, McpError>> {
        match message {
            Incoming::Answer { id, result } if id == wanted => {
                return Some(result.map_err(|refusal| McpError::Refused {
                    server: self.target.server.clone(),
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
        let response = self
            .client
            .post(&self.url)
            .headers(self.with(&session))
            .header(ACCEPT, "application/json, text/event-stream")
            .header(CONTENT_TYPE, "application/json")
            .body(message)
            .send()
            .await
            .map_err(|error| self.failed(&error))?;
        let status = response.status();
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(McpError::NeedsAuth {
                server: self.server.clone(),
                status: status.as_u16(),
            });
        }
        if status == StatusCode::NOT_FOUND && session.id.is_some() {
            return Err(McpError::SessionGone {
                server: self.server.clone(),
            });
        }
        if !status.is_success() {
            return Err(self.refused(response).await);
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
            .client
            .post(&self.url)
            .headers(self.with(&self.session().clone()))
            .header(ACCEPT, "application/json, text/event-stream")
            .header(CONTENT_TYPE, "application/json")
            .timeout(SHORT)
            .body(message);
        runtime.spawn(async move {
            let _ = request.send().await;
        });
    }

    fn with(&self, session: &Session) -> HeaderMap {
        let mut headers = self.headers.clone();
        if let Some(id) = &session.id {
            headers.insert(SESSION, id.clone());
        }
        if let Some(version) = &session.version {
            headers.insert(PROTOCOL, version.clone());
        }
        headers
    }

    fn session(&self) -> std::sync::MutexGuard<'_, Session> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn refused(&self, mut response: Response) -> McpError {
        let status = response.status();
        let page = response.chunk().await.ok().flatten().unwrap_or_default();
        let page = self
            .secrets
            .hide(String::from_utf8_lossy(&page).into_owned());
        let page: String = page.trim().chars().take(MOST_QUOTED).collect();
        let reason = if page.is_empty() {
            format!("HTTP {status}")
        } else {
            format!("HTTP {status}: {page}")
        };
        McpError::Http {
            server: self.server.clone(),
            reason,
        }
    }

    fn failed(&self, error: &reqwest::Error) -> McpError {
        // The address may hold a key.
        let mut reason = error.to_string().replace(&self.url, "its address");
        let mut cause = std::error::Error::source(error);
        while let Some(inner) = cause {
            reason = format!("{reason}: {inner}");
            cause = inner.source();
        }
        McpError::Http {
            server: self.server.clone(),
            reason,
        }
    }

    fn answer(&self, reason: &str) -> McpError {
        McpError::Answer {
            server: self.server.clone(),
            reason: reason.to_owned(),
        }
    }

    fn too_long(&self) -> McpError {
        self.answer(&format!("it is longer than {} MiB", MOST_BYTES >> 20))
    }
}

fn client(url: &str) -> Result<Client, reqwest::Error> {
    // Fails only when a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .user_agent(concat!("outrigger/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        // A redirect would carry the configured headers to another place.
        .redirect(reqwest::redirect::Policy::none());
    let local = ["http://localhost", "http://127.", "http://[::1]"]
        .iter()
        .any(|start| url.starts_with(start));
    let builder = if local { builder.no_proxy() } else { builder };
    // Loading the system's certificates takes tens of milliseconds.
    let builder = if url.starts_with("http://") {
        builder.tls_certs_only([])
    } else {
        builder
    };
    builder.build()
}
