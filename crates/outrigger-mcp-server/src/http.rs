//! Streamable HTTP: each message is a POST. The response is JSON, or an event stream if something is sent before it; a GET is a stream
//! of what belongs to no request, the changes of resources. The caller checks who may connect.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use futures_util::future::BoxFuture;
use futures_util::{Stream, StreamExt as _};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::exchange::WAITING;
use crate::server::{Backend, Server, error};

/// Maximum bytes of a message.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// Maximum number of clients; the one inactive for the longest is dropped.
const MAX_SESSIONS: usize = 256;
const SESSION: &str = "mcp-session-id";
const PARSE_ERROR: i64 = -32700;

struct Shared {
    backend: Arc<dyn Backend>,
    next: AtomicU64,
    sessions: Mutex<HashMap<String, (u64, Arc<Server>)>>,
}

/// Returns the routes of `/mcp`.
pub fn router(backend: Arc<dyn Backend>) -> Router {
    let shared = Arc::new(Shared {
        backend,
        next: AtomicU64::new(1),
        sessions: Mutex::default(),
    });
    Router::new()
        .route("/mcp", post(message).get(listen).delete(leave))
        .layer(DefaultBodyLimit::max(MAX_BYTES))
        .with_state(shared)
}

async fn message(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let Ok(message) = serde_json::from_slice::<Value>(&body) else {
        let answer = error(&Value::Null, PARSE_ERROR, "the message is not JSON");
        return json(StatusCode::BAD_REQUEST, &answer);
    };
    let (name, server) = match named(&headers) {
        Some(name) => match shared.known(name) {
            Some(server) => (None, server),
            None => return StatusCode::NOT_FOUND.into_response(),
        },
        None if message["method"] == "initialize" => match shared.begin() {
            Some((name, server)) => (Some(name), server),
            None => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        },
        None => {
            let answer = error(&Value::Null, -32600, "the header mcp-session-id is missing");
            return json(StatusCode::BAD_REQUEST, &answer);
        }
    };
    let (sender, receiver) = mpsc::channel(WAITING);
    let answer = Box::pin(async move { server.answer(message, &sender).await });
    let mut response = if takes_stream(&headers) {
        streamed(Exchanged::new(answer, receiver)).await
    } else {
        // Only the response can be sent.
        drop(receiver);
        answered(answer.await.as_ref())
    };
    if let Some(name) = name.and_then(|name| name.parse().ok()) {
        response.headers_mut().insert(SESSION, name);
    }
    response
}

/// Responds with JSON, or with a stream if something is sent before. A client that disconnects cancels its request.
async fn streamed(mut exchanged: Exchanged) -> Response {
    let Some(first) = exchanged.next().await else {
        return answered(None);
    };
    if exchanged.answer.is_none() && exchanged.queued.is_empty() {
        return answered(Some(&first));
    }
    let first = futures_util::stream::once(std::future::ready(first));
    events(first.chain(exchanged))
}

/// Sends changes of resources while the client listens.
async fn listen(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    if !takes_stream(&headers) {
        return StatusCode::NOT_ACCEPTABLE.into_response();
    }
    match named(&headers).and_then(|name| shared.known(name)) {
        Some(server) => events(server.updates()),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn takes_stream(headers: &HeaderMap) -> bool {
    headers
        .get(header::ACCEPT)
        .and_then(|it| it.to_str().ok())
        .is_some_and(|it| it.contains("text/event-stream"))
}

fn answered(answer: Option<&Value>) -> Response {
    match answer {
        Some(answer) => json(StatusCode::OK, answer),
        None => StatusCode::ACCEPTED.into_response(),
    }
}

fn events(messages: impl Stream<Item = Value> + Send + 'static) -> Response {
    let event = |message: Value| {
        Ok::<_, Infallible>(Event::default().event("message").data(message.to_string()))
    };
    Sse::new(messages.map(event))
        .keep_alive(KeepAlive::default())
        .into_response()
}

/// Messages during a request, and the response after them.
struct Exchanged {
    /// Present until it is ready.
    answer: Option<BoxFuture<'static, Option<Value>>>,
    sent: mpsc::Receiver<Value>,
    queued: VecDeque<Value>,
}

impl Exchanged {
    fn new(answer: BoxFuture<'static, Option<Value>>, sent: mpsc::Receiver<Value>) -> Self {
        Self {
            answer: Some(answer),
            sent,
            queued: VecDeque::new(),
        }
    }
}

impl Stream for Exchanged {
    type Item = Value;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Value>> {
        let this = &mut *self;
        if let Some(answer) = &mut this.answer
            && let Poll::Ready(answer) = answer.as_mut().poll(context)
        {
            this.answer = None;
            while let Ok(message) = this.sent.try_recv() {
                this.queued.push_back(message);
            }
            this.queued.extend(answer);
        }
        if let Some(message) = this.queued.pop_front() {
            return Poll::Ready(Some(message));
        }
        match this.answer {
            None => Poll::Ready(None),
            Some(_) => this.sent.poll_recv(context),
        }
    }
}

async fn leave(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> StatusCode {
    let gone = named(&headers).and_then(|name| shared.sessions().remove(name));
    match gone {
        Some(_) => StatusCode::NO_CONTENT,
        None => StatusCode::NOT_FOUND,
    }
}

fn named(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION)?.to_str().ok()
}

fn json(status: StatusCode, answer: &Value) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, answer.to_string()).into_response()
}

impl Shared {
    fn known(&self, name: &str) -> Option<Arc<Server>> {
        let heard = self.next.fetch_add(1, Ordering::Relaxed);
        let mut sessions = self.sessions();
        let (at, server) = sessions.get_mut(name)?;
        *at = heard;
        Some(Arc::clone(server))
    }

    /// Starts a session; `None` if there is no randomness for its name.
    fn begin(&self) -> Option<(String, Arc<Server>)> {
        let name = outrigger_stdx::random::token::<16>().ok()?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let server = Arc::new(Server::new(Arc::clone(&self.backend), number));
        let mut sessions = self.sessions();
        if sessions.len() >= MAX_SESSIONS {
            let oldest = sessions.iter().min_by_key(|(_, (at, _))| *at);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                sessions.remove(&oldest);
            }
        }
        sessions.insert(name.clone(), (number, Arc::clone(&server)));
        Some((name, server))
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, HashMap<String, (u64, Arc<Server>)>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::tests::{Echo, request};
    use axum::body::Body;
    use axum::http::Request;
    use serde_json::json;
    use tower::ServiceExt as _;

    async fn post(
        router: &Router,
        session: Option<&str>,
        accept: &str,
        message: &Value,
    ) -> Response {
        let mut request = Request::post("/mcp").header(header::ACCEPT, accept);
        if let Some(session) = session {
            request = request.header(SESSION, session);
        }
        let request = request.body(Body::from(message.to_string())).unwrap();
        router.clone().oneshot(request).await.unwrap()
    }

    async fn text(response: Response) -> String {
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await;
        String::from_utf8(bytes.unwrap().to_vec()).unwrap()
    }

    #[tokio::test]
    async fn an_answer_is_a_stream_where_something_is_sent_before_it() {
        const BOTH: &str = "application/json, text/event-stream";
        let router = router(Arc::new(Echo));
        let hello = request(1, "initialize", json!({"capabilities": {}}));
        let hello = post(&router, None, BOTH, &hello).await;
        let session = hello.headers()[SESSION].to_str().unwrap().to_owned();
        let session = Some(session.as_str());
        let asks = json!({"name": "asks", "_meta": {"progressToken": "p"}});
        let asks = request(2, "tools/call", asks);
        let answer = post(&router, session, BOTH, &asks).await;
        assert_eq!(answer.headers()[header::CONTENT_TYPE], "text/event-stream");
        let said = text(answer).await;
        let methods: Vec<bool> = ["progress", "careful", r#""id":2"#]
            .map(|it| said.contains(it))
            .to_vec();
        assert_eq!(
            (said.matches("event: message").count(), methods),
            (3, vec![true; 3]),
            "{said}"
        );
        // If nothing precedes it, or the client does not accept a stream: JSON.
        let echo = request(3, "tools/call", json!({"name": "echo"}));
        for (accept, message) in [(BOTH, &echo), ("application/json", &asks)] {
            let answer = post(&router, session, accept, message).await;
            assert_eq!(answer.headers()[header::CONTENT_TYPE], "application/json");
            assert!(text(answer).await.contains("result"));
        }
    }
}
