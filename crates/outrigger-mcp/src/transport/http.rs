//! Streamable HTTP: each message of ours is a POST; its response is JSON or an event stream. An interrupted stream is resumed if it
//! has identifiers (`Last-Event-ID`, SEP-1699). Unsolicited messages of a server arrive on a separate stream (`listen`), if it offers
//! one.
//!
//! The older transport with two URLs is [`crate::transport::sse`].

mod listen;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_sandbox::process_time::{Instant, timeout, timeout_at};
use outrigger_stdx::sync::lock;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::error::McpError;
use crate::transport::incoming::{self, RootList};
use crate::transport::pending::{CancelOnDrop, Outgoing, Pending};
use crate::transport::remote::Remote;
use crate::wire::{self, Id, Incoming, MAX_BYTES};
use outrigger_sse::Parser;

/// Timeout of messages whose response is not awaited.
const SHORT: Duration = Duration::from_secs(5);
/// Default pause until a stream is reopened (`retry`).
const RETRY: Duration = Duration::from_secs(1);
/// Minimum and maximum of that pause.
const RETRY_LIMITS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));
/// Maximum bytes of an event identifier that is sent back.
const MAX_EVENT_ID: usize = 4 * 1024;
const SESSION: &str = "mcp-session-id";
const PROTOCOL: &str = "mcp-protocol-version";
const LAST_EVENT: &str = "last-event-id";

/// A remote server.
pub(crate) struct Http {
    shared: Arc<Shared>,
    // Reads unsolicited messages of the server.
    listener: Mutex<Option<JoinHandle<()>>>,
}

// Everything that a request needs, so that it can be sent from a separate task.
struct Shared {
    remote: Remote,
    pending: Pending,
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

/// Where an interrupted stream continues.
struct Resume {
    last: HeaderValue,
    retry: Duration,
}

impl Drop for Http {
    fn drop(&mut self) {
        self.stop_listening();
    }
}

impl Http {
    /// Creates a connection; sends nothing yet.
    pub(crate) fn new(remote: Remote, roots: RootList) -> Self {
        Self {
            shared: Arc::new(Shared {
                remote,
                pending: Pending::new(roots),
                state: Mutex::default(),
            }),
            listener: Mutex::default(),
        }
    }

    pub(crate) fn pending(&self) -> &Pending {
        &self.shared.pending
    }

    /// Like [`crate::transport::stdio::Stdio::request`]. Every message of the response stream counts as progress.
    pub(crate) async fn request(&self, call: Outgoing<'_>) -> Result<Value, McpError> {
        let Outgoing { method, wait, .. } = call;
        let shared = &self.shared;
        let mut ticket = shared.pending.begin(call.asks)?;
        let id = ticket.id;
        let asked = call.asked(&shared.remote.server);
        let _cancel = CancelOnDrop {
            pending: &shared.pending,
            id,
            send: (method != "initialize").then_some(|message| shared.send_later(message)),
        };
        let deadline = Instant::now() + wait;
        let params = ticket.marked(method, call.params);
        let message = wire::request(id, method, &params);
        let error = tokio::select! {
            biased;
            answer = ticket.answered(asked, deadline) => return answer,
            error = shared.exchange(message, id) => error,
        };
        // The response may be the last message that arrived.
        if let Some(answer) = ticket.taken(asked) {
            return answer;
        }
        shared.pending.give_up(id);
        if matches!(error, McpError::SessionGone { .. }) {
            shared.pending.close(&error);
        }
        Err(error)
    }

    /// Sends a notification.
    pub(crate) async fn notify(&self, method: &str) {
        let message = wire::notice(method, None);
        let _ = timeout(SHORT, self.shared.post(message)).await;
    }

    /// Sets the negotiated protocol version, which is sent with every further message.
    pub(crate) fn agreed(&self, version: &str) {
        self.shared.session().version = HeaderValue::try_from(version).ok();
    }

    /// Starts to read unsolicited messages of the server.
    pub(crate) fn listen(&self) {
        let reader = tokio::spawn(listen::listen(Arc::downgrade(&self.shared)));
        let old = self.listener().replace(reader);
        if let Some(old) = old {
            old.abort();
        }
    }

    /// Ends the session, if the server has assigned one.
    pub(crate) async fn close(&self, grace: Duration) {
        let shared = &self.shared;
        self.stop_listening();
        let session = shared.session().clone();
        shared.pending.close(&McpError::Closed {
            server: shared.remote.server.clone(),
            cause: "was left".to_owned(),
        });
        if session.id.is_some() {
            let remote = &shared.remote;
            let request = remote.client.delete(&remote.url);
            let request = request.headers(shared.with(&session));
            let _ = timeout(grace, remote.send(request)).await;
        }
    }

    fn stop_listening(&self) {
        if let Some(listener) = self.listener().take() {
            listener.abort();
        }
    }

    fn listener(&self) -> std::sync::MutexGuard<'_, Option<JoinHandle<()>>> {
        lock(&self.listener)
    }
}

impl Shared {
    /// Sends a request and handles its response. Returns the final error, which is used only if there was no answer.
    async fn exchange(self: &Arc<Self>, message: String, id: Id) -> McpError {
        let read = async {
            match self.post(message).await? {
                Body::Json(response) => self.json(response, id).await?,
                Body::Events(response) => self.follow(response, id).await?,
                Body::Nothing => return Err(self.remote.answer("it sent nothing")),
            }
            Err(self.remote.answer("the answer is not in it"))
        };
        match read.await {
            Ok(never) => never,
            Err(error) => error,
        }
    }

    async fn json(self: &Arc<Self>, mut response: Response, id: Id) -> Result<(), McpError> {
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| self.remote.failed(&error))?
        {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_BYTES {
                return Err(self.remote.too_long());
            }
        }
        let messages =
            wire::read(&body).ok_or_else(|| self.remote.answer("it is not an MCP message"))?;
        for message in messages {
            self.take(message, Some(id));
        }
        Ok(())
    }

    /// Reads the stream of a response, and resumes it if interrupted. The caller controls the timeout.
    async fn follow(self: &Arc<Self>, response: Response, id: Id) -> Result<(), McpError> {
        let (mut response, mut known) = (response, None);
        loop {
            let resume = match self.events(response, Some(id)).await {
                Ok(resume) => resume,
                Err(Broken::Lost { resume, error }) => Some(resume.ok_or(error)?),
                Err(Broken::Wrong(error)) => return Err(error),
            };
            let ended = || self.remote.answer("the stream ended before the answer");
            let resume = resume.or(known).ok_or_else(ended)?;
            tokio::time::sleep(resume.retry).await;
            response = self.stream(Some(&resume.last)).await?;
            known = Some(resume);
        }
    }

    /// Opens a stream without a message of ours (GET): a resumed one, or that of the server's own messages.
    async fn stream(&self, last: Option<&HeaderValue>) -> Result<Response, McpError> {
        let mut headers = self.with(&self.session().clone());
        if let Some(last) = last {
            headers.insert(LAST_EVENT, last.clone());
        }
        let request = self.remote.client.get(&self.remote.url).headers(headers);
        let request = request.header(ACCEPT, "text/event-stream");
        let response = self.remote.send(request).await?;
        if !response.status().is_success() {
            return Err(self.remote.refused(response).await);
        }
        if !is(&response, "text/event-stream") {
            return Err(self.remote.answer("it is not a stream of events"));
        }
        Ok(response)
    }

    /// Reads a stream to its end; returns where it can be resumed.
    async fn events(
        self: &Arc<Self>,
        mut response: Response,
        during: Option<Id>,
    ) -> Result<Option<Resume>, Broken> {
        let (mut parser, mut events) = (Parser::new(MAX_BYTES), Vec::new());
        loop {
            let chunk = match response.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => return Ok(resume(&parser)),
                Err(error) => {
                    return Err(Broken::Lost {
                        resume: resume(&parser),
                        error: self.remote.failed(&error),
                    });
                }
            };
            let fed = parser.feed(&chunk, &mut events);
            for event in events.drain(..) {
                // An empty event only sets the position to resume from.
                if event.data.is_empty() {
                    continue;
                }
                if let Some(id) = during {
                    self.pending.progress(id);
                }
                for message in wire::read(event.data.as_bytes()).into_iter().flatten() {
                    self.take(message, during);
                }
            }
            fed.map_err(|_| Broken::Wrong(self.remote.too_long()))?;
        }
    }

    fn take(self: &Arc<Self>, message: Incoming, during: Option<Id>) {
        let shared = Arc::clone(self);
        let send = move |answer| shared.send_later(answer);
        incoming::take(&self.pending, &self.remote, message, during, send);
    }

    async fn post(&self, message: String) -> Result<Body, McpError> {
        let session = self.session().clone();
        let response = self.remote.send(self.message(&session, message)).await?;
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
        Ok(if is(&response, "text/event-stream") {
            Body::Events(response)
        } else if is(&response, "application/json") {
            Body::Json(response)
        } else {
            Body::Nothing
        })
    }

    // The response is not awaited. Outside a runtime (the host is shutting down) it is not sent.
    fn send_later(self: &Arc<Self>, message: String) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let shared = Arc::clone(self);
        runtime.spawn(async move {
            let request = shared.message(&shared.session().clone(), message);
            let _ = timeout_at(Instant::now() + SHORT, shared.remote.send(request)).await;
        });
    }

    fn message(&self, session: &Session, message: String) -> RequestBuilder {
        let request = self.remote.client.post(&self.remote.url);
        request
            .headers(self.with(session))
            .header(ACCEPT, "application/json, text/event-stream")
            .header(CONTENT_TYPE, "application/json")
            .body(message)
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

/// Why reading a stream stopped.
enum Broken {
    /// The connection was lost.
    Lost {
        resume: Option<Resume>,
        error: McpError,
    },
    /// It contains something invalid.
    Wrong(McpError),
}

fn resume(parser: &Parser) -> Option<Resume> {
    let last = parser
        .last_event_id()
        .filter(|id| id.len() <= MAX_EVENT_ID)?;
    let (least, most) = RETRY_LIMITS;
    Some(Resume {
        last: HeaderValue::from_bytes(last.as_bytes()).ok()?,
        retry: parser.retry().unwrap_or(RETRY).clamp(least, most),
    })
}

fn is(response: &Response, kind: &str) -> bool {
    let named = response.headers().get(CONTENT_TYPE);
    let named = named.and_then(|named| named.to_str().ok());
    named.is_some_and(|named| named.to_ascii_lowercase().starts_with(kind))
}
