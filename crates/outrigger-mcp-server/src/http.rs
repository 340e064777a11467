//! Streamable HTTP: each message is a POST, and its answer is JSON. There is no stream for messages of our own accord, since there are
//! none. Who may ask is the caller's to check.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use serde_json::Value;

use crate::server::{Backend, Server, error};

/// The longest message, in bytes.
const MAX_BYTES: usize = 32 * 1024 * 1024;
/// Clients that are remembered; the one that was heard of longest ago goes.
const MAX_SESSIONS: usize = 256;
const SESSION: &str = "mcp-session-id";
const PARSE_ERROR: i64 = -32700;

struct Shared {
    backend: Arc<dyn Backend>,
    next: AtomicU64,
    sessions: Mutex<HashMap<String, (u64, Arc<Server>)>>,
}

/// The routes of `/mcp`.
pub fn router(backend: Arc<dyn Backend>) -> Router {
    let shared = Arc::new(Shared {
        backend,
        next: AtomicU64::new(1),
        sessions: Mutex::default(),
    });
    Router::new()
        .route("/mcp", post(message).delete(leave))
        .layer(DefaultBodyLimit::max(MAX_BYTES))
        .with_state(shared)
}

async fn message(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let Ok(message) = serde_json::from_slice::<Value>(&body) else {
        let answer = error(&Value::Null, PARSE_ERROR, "it is no JSON");
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
    let mut response = match server.answer(message).await {
        Some(answer) => json(StatusCode::OK, &answer),
        None => StatusCode::ACCEPTED.into_response(),
    };
    if let Some(name) = name.and_then(|name| name.parse().ok()) {
        response.headers_mut().insert(SESSION, name);
    }
    response
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

    /// `None`: there is no randomness to name it by.
    fn begin(&self) -> Option<(String, Arc<Server>)> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes).ok()?;
        let name: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
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
