//! The older HTTP transport: an event stream (GET) names the URL for our messages, and carries the responses. Tried
//! if streamable HTTP is not supported, as in OpenCode.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_sandbox::process_time::{Instant, timeout, timeout_at};
use outrigger_stdx::sync::lock;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Response, Url};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::error::McpError;
use crate::transport::incoming::{self, RootList};
use crate::transport::pending::{CancelOnDrop, Outgoing, Pending};
use crate::transport::remote::Remote;
use crate::wire::{self, Incoming, MAX_BYTES};
use outrigger_sse::Parser;

/// Timeout of messages whose response is not awaited.
const SHORT: Duration = Duration::from_secs(5);
const PROTOCOL: &str = "mcp-protocol-version";

/// A remote server. The stream is closed on drop.
pub(crate) struct SseLink {
    shared: Arc<Shared>,
    reader: JoinHandle<()>,
}

struct Shared {
    remote: Remote,
    pending: Pending,
    // The URL for messages; known once the stream has named it.
    endpoint: watch::Sender<Option<Url>>,
    version: Mutex<Option<HeaderValue>>,
}

impl Drop for SseLink {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl SseLink {
    /// Opens the stream and waits for the URL, for at most `wait`.
    ///
    /// # Errors
    /// As [`Remote::send`], and [`McpError::Answer`] for a stream that names no URL of this server.
    pub(crate) async fn open(
        remote: Remote,
        roots: RootList,
        wait: Duration,
    ) -> Result<Self, McpError> {
        let deadline = Instant::now() + wait;
        let late = |server: &str| McpError::Timeout {
            server: server.to_owned(),
            what: "the stream of events".to_owned(),
            after: wait,
        };
        let request = remote
            .client
            .get(&remote.url)
            .headers(remote.headers.clone())
            .header(ACCEPT, "text/event-stream");
        let response = timeout_at(deadline, remote.send(request))
            .await
            .map_err(|_| late(&remote.server))??;
        if !response.status().is_success() {
            return Err(remote.refused(response).await);
        }
        let kind = response.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.to_ascii_lowercase().starts_with("text/event-stream") {
            return Err(remote.answer("it is not a stream of events"));
        }
        let shared = Arc::new(Shared {
            remote,
            pending: Pending::new(roots),
            endpoint: watch::Sender::new(None),
            version: Mutex::default(),
        });
        let link = Self {
            reader: tokio::spawn(read(response, Arc::clone(&shared))),
            shared: Arc::clone(&shared),
        };
        let mut endpoint = shared.endpoint.subscribe();
        let known = timeout_at(deadline, async {
            tokio::select! {
                _ = endpoint.wait_for(Option::is_some) => Ok(()),
                error = shared.ended() => Err(error),
            }
        });
        known.await.map_err(|_| late(&shared.remote.server))??;
        Ok(link)
    }

    pub(crate) fn pending(&self) -> &Pending {
        &self.shared.pending
    }

    /// Like [`crate::transport::stdio::Stdio::request`].
    pub(crate) async fn request(&self, call: Outgoing<'_>) -> Result<Value, McpError> {
        let Outgoing { method, wait, .. } = call;
        let mut ticket = self.shared.pending.begin(call.asks)?;
        let asked = call.asked(&self.shared.remote.server);
        let _cancel = CancelOnDrop {
            pending: &self.shared.pending,
            id: ticket.id,
            send: (method != "initialize").then_some(|message| self.shared.send_later(message)),
        };
        let deadline = Instant::now() + wait;
        let params = ticket.marked(method, call.params);
        let sent = self.shared.post(wire::request(ticket.id, method, &params));
        timeout_at(deadline, sent)
            .await
            .map_err(|_| asked.late())??;
        ticket.answered(asked, deadline).await
    }

    /// Sends a notification.
    pub(crate) async fn notify(&self, method: &str) {
        let _ = timeout(SHORT, self.shared.post(wire::notice(method, None))).await;
    }

    /// Sets the negotiated protocol version, which is sent with every further message.
    pub(crate) fn agreed(&self, version: &str) {
        let mut held = self.shared.version();
        *held = HeaderValue::try_from(version).ok();
    }

    /// Closes the stream, which ends such a session.
    pub(crate) fn close(&self) {
        self.reader.abort();
        self.shared.pending.close(&McpError::Closed {
            server: self.shared.remote.server.clone(),
            cause: "was left".to_owned(),
        });
    }
}

impl Shared {
    async fn post(&self, message: String) -> Result<(), McpError> {
        let endpoint = self.endpoint.borrow().clone();
        let endpoint = endpoint.ok_or_else(|| self.remote.answer("it named no address"))?;
        let mut headers: HeaderMap = self.remote.headers.clone();
        if let Some(version) = &*self.version() {
            headers.insert(PROTOCOL, version.clone());
        }
        let request = self
            .remote
            .client
            .post(endpoint)
            .headers(headers)
            .header(CONTENT_TYPE, "application/json")
            .body(message);
        let response = self.remote.send(request).await?;
        if response.status().is_success() {
            Ok(())
        } else {
            Err(self.remote.refused(response).await)
        }
    }

    // Outside a runtime (the host is shutting down) it is not sent.
    fn send_later(self: &Arc<Self>, message: String) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let shared = Arc::clone(self);
            runtime.spawn(async move {
                let _ = timeout(SHORT, shared.post(message)).await;
            });
        }
    }

    fn version(&self) -> std::sync::MutexGuard<'_, Option<HeaderValue>> {
        lock(&self.version)
    }

    /// Resolves when the stream ends.
    async fn ended(&self) -> McpError {
        loop {
            let news = self.pending.news();
            if let Some(error) = self.pending.closed() {
                return error;
            }
            news.notified().await;
        }
    }

    /// Takes the URL of the first event. Another origin would get the configured headers.
    fn name_endpoint(&self, data: &str) -> Result<(), McpError> {
        let base = Url::parse(&self.remote.url);
        let named = base.as_ref().ok().and_then(|base| base.join(data).ok());
        match (base, named) {
            (Ok(base), Some(named)) if base.origin() == named.origin() => {
                self.endpoint.send_replace(Some(named));
                Ok(())
            }
            _ => Err(self
                .remote
                .answer("the address for messages is of another origin")),
        }
    }

    fn take(self: &Arc<Self>, message: Incoming) {
        let shared = Arc::clone(self);
        let send = move |answer| shared.send_later(answer);
        incoming::take(&self.pending, &self.remote, message, None, send);
    }
}

async fn read(response: Response, shared: Arc<Shared>) {
    let error = match follow(response, &shared).await {
        Ok(()) => McpError::Closed {
            server: shared.remote.server.clone(),
            cause: "ended the stream of events".to_owned(),
        },
        Err(error) => error,
    };
    shared.pending.close(&error);
}

async fn follow(mut response: Response, shared: &Arc<Shared>) -> Result<(), McpError> {
    let (mut parser, mut events) = (Parser::new(MAX_BYTES), Vec::new());
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| shared.remote.failed(&error))?
    {
        let fed = parser.feed(&chunk, &mut events);
        for event in events.drain(..) {
            if event.name == "endpoint" {
                shared.name_endpoint(&event.data)?;
                continue;
            }
            for message in wire::read(event.data.as_bytes()).into_iter().flatten() {
                shared.take(message);
            }
        }
        fed.map_err(|_| shared.remote.too_long())?;
    }
    Ok(())
}
