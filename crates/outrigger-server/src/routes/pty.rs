//! Terminals: `/pty`, and the WebSocket that shows one.
//!
//! Text frames carry output and keystrokes. A binary frame that starts with a zero byte contains `{"cursor": n}`: the
//! position of the output when the client attached. A client that lost its connection uses it to request the rest.

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::{SinkExt as _, StreamExt as _};
use outrigger_agent::Agent;
use outrigger_sandbox::Size;
use outrigger_workspace::terminals::{Attached, NewPty, PtyError, PtyFrom, PtyInfo};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::scope::unsandboxed_only;
use crate::error::ApiError;

/// Characters of earlier output in one frame, as in OpenCode.
const CHUNK: usize = 64 * 1024;
/// Maximum bytes of one message of a client.
const MAX_TYPED: usize = 1024 * 1024;
/// The header that a page must send to get a ticket: no plain form or link can.
const TICKET_HEADER: &str = "x-opencode-ticket";

pub(crate) fn routes() -> Router<Agent> {
    Router::new()
        .route("/pty", get(list).post(create))
        .route("/pty/shells", get(shells))
        .route("/pty/{id}", get(one).put(update).delete(remove))
        .route("/pty/{id}/connect-token", post(token))
        .route("/pty/{id}/connect", get(connect))
        .route_layer(from_fn(unsandboxed_only))
}

impl From<PtyError> for ApiError {
    fn from(error: PtyError) -> Self {
        match error {
            PtyError::Io(_) => Self::internal(error.to_string()),
            PtyError::Blocked(_) => Self::forbidden(error.to_string()),
            PtyError::TooMany | PtyError::Start(_) => Self::bad_request(error.to_string()),
        }
    }
}

/// OpenCode's newer errors have this form.
fn absent(id: &str) -> Response {
    let body = json!({
        "_tag": "PtyNotFoundError", "ptyID": id, "message": format!("PTY session not found: {id}"),
    });
    (StatusCode::NOT_FOUND, Json(body)).into_response()
}

async fn list(State(agent): State<Agent>) -> Json<Vec<PtyInfo>> {
    Json(agent.ptys())
}

async fn create(
    State(agent): State<Agent>,
    Json(body): Json<NewPty>,
) -> Result<Json<PtyInfo>, ApiError> {
    Ok(Json(agent.open_pty(body).await?))
}

async fn one(State(agent): State<Agent>, Path(id): Path<String>) -> Response {
    match agent.pty(&id) {
        Some(info) => Json(info).into_response(),
        None => absent(&id),
    }
}

#[derive(Deserialize)]
struct Update {
    title: Option<String>,
    size: Option<Window>,
}

#[derive(Deserialize)]
struct Window {
    rows: u16,
    cols: u16,
}

async fn update(
    State(agent): State<Agent>,
    Path(id): Path<String>,
    Json(body): Json<Update>,
) -> Result<Response, ApiError> {
    let size = body.size.map(|Window { rows, cols }| Size { rows, cols });
    Ok(match agent.update_pty(&id, body.title, size).await? {
        Some(info) => Json(info).into_response(),
        None => absent(&id),
    })
}

async fn remove(State(agent): State<Agent>, Path(id): Path<String>) -> Response {
    if agent.remove_pty(&id).await {
        Json(true).into_response()
    } else {
        absent(&id)
    }
}

/// Returns the shells of this machine. Those whose `-c` does not accept what a model writes are not acceptable for its
/// tool.
async fn shells() -> Json<Value> {
    let text = std::fs::read_to_string("/etc/shells").unwrap_or_default();
    let mut paths: Vec<&str> = Vec::new();
    let named = text
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with('/'));
    for path in named {
        if !paths.contains(&path) && std::path::Path::new(path).is_file() {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        paths = ["/bin/bash", "/bin/zsh", "/bin/sh"]
            .into_iter()
            .filter(|path| std::path::Path::new(path).is_file())
            .collect();
    }
    let shells = paths.into_iter().map(|path| {
        let name = path.rsplit('/').next().unwrap_or(path);
        json!({ "path": path, "name": name, "acceptable": !matches!(name, "fish" | "nu") })
    });
    Json(shells.collect())
}

/// Returns whether a page of this origin may open a terminal: one of this server, of this machine, or of OpenCode's
/// desktop program. Programs other than browsers send no origin.
fn may_open(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let Some(origin) = text("origin") else {
        return true;
    };
    if matches!(
        origin,
        "tauri://localhost"
            | "http://tauri.localhost"
            | "https://tauri.localhost"
            | "oc://renderer"
    ) {
        return true;
    }
    let Some(place) = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"))
    else {
        return false;
    };
    let port = |host: &str| {
        place
            .strip_prefix(host)
            .and_then(|rest| rest.strip_prefix(':'))
            .is_some_and(|port| port.parse::<u16>().is_ok())
    };
    text("host") == Some(place) || port("localhost") || port("127.0.0.1")
}

async fn token(State(agent): State<Agent>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    let asked = headers.get(TICKET_HEADER).is_some_and(|value| value == "1");
    if !asked || !may_open(&headers) {
        let body =
            json!({ "_tag": "PtyForbiddenError", "message": "Invalid PTY connect token request" });
        return (StatusCode::FORBIDDEN, Json(body)).into_response();
    }
    match agent.pty_ticket(&id) {
        Some((ticket, good_for)) => {
            Json(json!({ "ticket": ticket, "expires_in": good_for.as_secs() })).into_response()
        }
        None => absent(&id),
    }
}

#[derive(Deserialize)]
struct Connect {
    cursor: Option<String>,
    ticket: Option<String>,
}

fn first_output(cursor: Option<&str>) -> PtyFrom {
    match cursor.and_then(|cursor| cursor.parse::<i64>().ok()) {
        Some(-1) => PtyFrom::Now,
        Some(place) => u64::try_from(place).map_or(PtyFrom::Kept, PtyFrom::At),
        None => PtyFrom::Kept,
    }
}

async fn connect(
    State(agent): State<Agent>,
    Path(id): Path<String>,
    Query(query): Query<Connect>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let ticket = query.ticket.filter(|ticket| !ticket.is_empty());
    // The ticket first: without a valid one nothing is revealed, not even which terminals exist.
    let let_in =
        may_open(&headers) && ticket.is_none_or(|ticket| agent.use_pty_ticket(&id, &ticket));
    if !let_in {
        return ApiError::forbidden(
            "the ticket is invalid for this terminal, or the page is from another server",
        )
        .into_response();
    }
    if agent.pty(&id).is_none() {
        return ApiError::missing(format!("there is no terminal `{id}`")).into_response();
    }
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(_) => {
            return ApiError::bad_request("a terminal requires a WebSocket").into_response();
        }
    };
    let from = first_output(query.cursor.as_deref());
    upgrade
        .max_message_size(MAX_TYPED)
        .on_upgrade(move |socket| async move {
            match agent.attach_pty(&id, from) {
                Some(attached) => show(socket, attached).await,
                // It ended while the connection was established.
                None => close(socket, 4404, "session not found").await,
            }
        })
}

async fn close(mut socket: WebSocket, code: u16, reason: &'static str) {
    let frame = CloseFrame {
        code,
        reason: reason.into(),
    };
    // A client that has disconnected needs no close message.
    let _ = socket.send(Message::Close(Some(frame))).await;
}

/// Creates the frame with the position of the output.
fn meta(cursor: u64) -> Message {
    let mut bytes = vec![0];
    bytes.extend_from_slice(json!({ "cursor": cursor }).to_string().as_bytes());
    Message::Binary(bytes.into())
}

/// Splits a text between characters.
fn chunks(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest
            .char_indices()
            .nth(CHUNK)
            .map_or(rest.len(), |(at, _)| at);
        let (piece, behind) = rest.split_at_checked(end)?;
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Forwards output and keystrokes until one side ends. They are independent: the output of a program that does not read is
/// still shown.
async fn show(socket: WebSocket, mut attached: Attached) {
    let keyboard = attached.keyboard();
    let (mut out, mut keys) = socket.split();
    let typed = async move {
        while let Some(Ok(message)) = keys.next().await {
            let sent = match &message {
                Message::Text(text) => keyboard.write(text.as_bytes()).await,
                Message::Binary(bytes) if std::str::from_utf8(bytes).is_ok() => {
                    keyboard.write(bytes).await
                }
                Message::Close(_) => break,
                _ => Ok(()),
            };
            if sent.is_err() {
                break;
            }
        }
    };
    let shown = async move {
        for piece in chunks(&attached.replay) {
            out.send(Message::Text(piece.into())).await.ok()?;
        }
        out.send(meta(attached.cursor)).await.ok()?;
        let (code, reason) = loop {
            match attached.next().await {
                Ok(Some(text)) => out.send(Message::Text((&*text).into())).await.ok()?,
                Ok(None) => break (1000, ""),
                Err(_behind) => break (1013, "too slow: connect again with your cursor"),
            }
        };
        let frame = CloseFrame {
            code,
            reason: reason.into(),
        };
        out.send(Message::Close(Some(frame))).await.ok()
    };
    tokio::select! {
        () = typed => {}
        _ = shown => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::marks::FromPlugin;

    #[tokio::test]
    async fn plugins_have_no_terminals_and_no_shell() {
        use axum::body::Body;
        use axum::http::Request;
        use tower::ServiceExt as _;

        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().display().to_string();
        let env = [("HOME".to_owned(), home)].into_iter().collect();
        let boot = outrigger_agent::Boot::new(dir.path().to_path_buf(), env);
        let agent = Agent::boot(boot).await.unwrap();
        for (method, path, want) in [
            ("POST", "/pty", StatusCode::FORBIDDEN),
            ("PUT", "/pty/pty_1", StatusCode::FORBIDDEN),
            ("DELETE", "/pty/pty_1", StatusCode::FORBIDDEN),
            ("POST", "/pty/pty_1/connect-token", StatusCode::FORBIDDEN),
            ("GET", "/pty/pty_1/connect", StatusCode::FORBIDDEN),
            ("POST", "/session/ses_1/shell", StatusCode::FORBIDDEN),
            ("GET", "/pty", StatusCode::OK),
        ] {
            let request = Request::builder()
                .method(method)
                .uri(path)
                .extension(FromPlugin)
                .header("content-type", "application/json")
                .header(TICKET_HEADER, "1")
                .body(Body::from("{}"))
                .unwrap();
            let answer = crate::router(agent.clone()).oneshot(request).await.unwrap();
            assert_eq!(answer.status(), want, "{method} {path}");
        }
        assert_eq!(agent.ptys(), []);
    }

    #[test]
    fn origins_that_may_open_a_terminal() {
        let cases = [
            (None, true),
            (Some("http://example.test:4096"), true),
            (Some("https://example.test:4096"), true),
            (Some("http://example.test"), false),
            (Some("http://localhost:3000"), true),
            (Some("http://127.0.0.1:1"), true),
            (Some("http://localhost.evil.test:80"), false),
            (Some("http://localhost:80.evil.test"), false),
            (Some("http://127.0.0.1:"), false),
            (Some("null"), false),
            (Some("tauri://localhost"), true),
            (Some(""), false),
        ];
        for (origin, want) in cases {
            let mut headers = HeaderMap::new();
            headers.insert("host", "example.test:4096".parse().unwrap());
            if let Some(origin) = origin {
                headers.insert("origin", origin.parse().unwrap());
            }
            assert_eq!(may_open(&headers), want, "{origin:?}");
        }
    }

    #[test]
    fn a_cursor_says_what_is_shown_first() {
        for (cursor, want) in [
            (None, PtyFrom::Kept),
            (Some("-1"), PtyFrom::Now),
            (Some("7"), PtyFrom::At(7)),
            (Some("-2"), PtyFrom::Kept),
            (Some("abc"), PtyFrom::Kept),
        ] {
            assert_eq!(first_output(cursor), want, "{cursor:?}");
        }
    }

    #[test]
    fn a_long_text_goes_in_pieces() {
        let text = "\u{e9}".repeat(CHUNK * 2 + 1);
        let sizes: Vec<usize> = chunks(&text).map(|piece| piece.chars().count()).collect();
        assert_eq!(sizes, [CHUNK, CHUNK, 1]);
        assert_eq!(chunks("").count(), 0);
    }
}
