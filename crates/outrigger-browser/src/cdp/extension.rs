//! Transport over the user's own browser: its extension connects to us and forwards commands to `chrome.debugger`
//! (`extension/src/relay`). The browser may stop the extension's worker at any time; it reconnects, and the connection seen from
//! here continues.

use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{ConnectInfo, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::header::SEC_WEBSOCKET_PROTOCOL;
use http::{HeaderMap, StatusCode};
use outrigger_bridge::{Acceptor, ConnectionHandle, Gate};
use outrigger_protocol::audit::{AuditKind, AuditRecord};
use outrigger_sandbox::process_time::timeout;
use outrigger_stdx::clock::now_ms;
use outrigger_stdx::text::hex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::{MAX_MESSAGE, Wire};
use crate::error::BrowserError;
use crate::record::RecordFn;

const SUBPROTOCOL: &str = "outrigger.browser.v1";
const NONCE: &str = "nonce.";
/// The first command: identifies this program and proves that it knows the token. Claims the tabs of an earlier connection.
const HELLO: &str = "Outrigger.hello";
/// Timeout of its answer.
const HELLO_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout for an extension to connect: an alarm wakes its worker every 30 s.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(40);
/// Minimum length of a token, in bytes.
const MIN_TOKEN: usize = 32;
/// Code of an answer with which the extension refuses a command.
const REFUSED: i64 = -32_001;

/// The address to which the extension connects, and the shared secret.
#[derive(Clone)]
pub struct Relay {
    /// `chrome-extension://…`.
    pub origin: String,
    /// Port on `127.0.0.1`.
    pub port: u16,
    /// The shared secret.
    pub token: String,
    /// Where the user finds it, as text.
    pub token_place: String,
    /// Timeout for the extension to connect.
    pub wait: Duration,
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay")
            .field("origin", &self.origin)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl Relay {
    /// Reads the token from a file that only its owner can read; creates it if there is no private one.
    ///
    /// # Errors
    /// Reads the token from the file.
    pub(crate) fn kept(origin: &str, port: u16, file: &Path) -> io::Result<Self> {
        let _lock = outrigger_files::lock(&file.with_extension("lock"))?;
        let is_secret = std::fs::symlink_metadata(file)
            .is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o077 == 0);
        let kept = is_secret
            .then(|| outrigger_files::read_to_string(file, outrigger_files::SETTINGS))
            .transpose()?
            .map(|text| text.trim().to_owned())
            .filter(|text| text.len() >= MIN_TOKEN);
        let token = match kept {
            Some(token) => token,
            None => {
                let token = outrigger_stdx::random::token::<24>()?;
                outrigger_files::replace(file, token.as_bytes(), outrigger_files::Readers::Owner)?;
                token
            }
        };
        Ok(Self {
            origin: origin.trim_end_matches('/').to_owned(),
            port,
            token,
            token_place: format!("in {}", file.display()),
            wait: CONNECT_TIMEOUT,
        })
    }

    /// Returns the hint for a missing extension.
    pub(crate) fn advice(&self) -> String {
        format!(
            "in the panel of the extension, under Settings, Native program, switch it on with the address ws://127.0.0.1:{} and the token, which is {}",
            self.port, self.token_place
        )
    }
}

/// A listener, closed when dropped.
pub(crate) struct Listening(JoinHandle<()>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Shared {
    gate: Gate,
    token: String,
    /// Name of this connection: tabs of other connections are not ours.
    agent: String,
    /// The streams of the connected extension; there is at most one.
    wire: Arc<tokio::sync::Mutex<Wire>>,
    record: RecordFn,
}

/// Listens for the extension.
///
/// # Errors
/// [`BrowserError::Relay`].
pub(crate) async fn over_extension(
    relay: &Relay,
    wire: Wire,
    record: &RecordFn,
) -> Result<Listening, BrowserError> {
    let failed = |why: String| BrowserError::Relay(why);
    let listener = TcpListener::bind(("127.0.0.1", relay.port))
        .await
        .map_err(|error| {
            failed(format!(
                "the port {} cannot be listened on: {error}; if another agent uses your browser, it has it until that agent ends",
                relay.port
            ))
        })?;
    let agent = outrigger_stdx::random::token::<16>().map_err(|error| failed(error.to_string()))?;
    let shared = Arc::new(Shared {
        gate: Gate::new(
            digest(&format!("client:{}", relay.token)),
            vec![relay.origin.clone()],
            false,
        ),
        token: relay.token.clone(),
        agent,
        wire: Arc::new(tokio::sync::Mutex::new(wire)),
        record: Arc::clone(record),
    });
    let router = Router::new().route("/", get(upgrade)).with_state(shared);
    let service = router.into_make_service_with_connect_info::<ConnectionHandle>();
    Ok(Listening(tokio::spawn(async move {
        if let Err(error) = axum::serve(Acceptor::new(listener), service).await {
            tracing::warn!("[browser] the extension can no longer connect: {error}");
        }
    })))
}

async fn upgrade(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(connection): ConnectInfo<ConnectionHandle>,
    headers: HeaderMap,
    socket: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let admitted = shared.gate.admit(&headers);
    let nonce = nonce_of(&headers)
        .filter(|it| it.len() == 32)
        .map(str::to_owned);
    let refused = match (&admitted, &nonce) {
        (Err(refusal), _) if refusal.code == "bridge.origin" => {
            Some((StatusCode::FORBIDDEN, "relay.origin"))
        }
        (Err(_), _) | (Ok(()), None) => Some((StatusCode::UNAUTHORIZED, "relay.unauthorized")),
        (Ok(()), Some(_)) => None,
    };
    if let Some((status, code)) = refused {
        let origin = headers
            .get(http::header::ORIGIN)
            .map_or("none".into(), |it| String::from_utf8_lossy(it.as_bytes()));
        let origin: String = origin.chars().take(200).collect();
        (shared.record)(record_of(code, "connection", format!("origin: {origin}")));
        return (status, code).into_response();
    }
    connection.authenticated();
    // A new worker may connect before its predecessor is known to be gone; it retries.
    let Ok(wire) = Arc::clone(&shared.wire).try_lock_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "relay.busy").into_response();
    };
    match socket {
        Err(rejection) => rejection.into_response(),
        Ok(socket) => socket
            .protocols([SUBPROTOCOL])
            .max_message_size(MAX_MESSAGE)
            .max_frame_size(MAX_MESSAGE)
            .on_upgrade(move |socket| serve(shared, socket, wire, nonce.unwrap_or_default())),
    }
}

/// Reads and writes until one end closes.
async fn serve(
    shared: Arc<Shared>,
    mut socket: WebSocket,
    mut wire: tokio::sync::OwnedMutexGuard<Wire>,
    nonce: String,
) {
    let proof = digest(&format!("server:{nonce}:{}", shared.token));
    let hello =
        json!({ "id": 0, "method": HELLO, "params": { "agent": shared.agent, "proof": proof } });
    if socket.send(Message::text(hello.to_string())).await.is_err() {
        return;
    }
    let Wire { outgoing, incoming } = &mut *wire;
    // It sends messages only after we have proved who we are: about our earlier tabs, or as answers.
    let Ok(Some(Ok(Message::Text(first)))) = timeout(HELLO_TIMEOUT, socket.recv()).await else {
        return;
    };
    // Messages sent to a lost connection have failed.
    while outgoing.try_recv().is_ok() {}
    incoming.resume();
    if incoming.take(first.as_bytes()).is_err() {
        return incoming.interrupt();
    }
    loop {
        tokio::select! {
            message = outgoing.recv() => match message {
                Some(message) if !message.is_empty() => {
                    if socket.send(Message::text(message)).await.is_err() {
                        break;
                    }
                }
                _ => {
                    let _ = socket.send(Message::Close(None)).await;
                    return incoming.close("is not used any more".to_owned());
                }
            },
            message = socket.recv() => match message {
                Some(Ok(Message::Text(text))) => {
                    if let Some(refusal) = refusal_of(&text) {
                        (shared.record)(refusal);
                    }
                    if incoming.take(text.as_bytes()).is_err() {
                        break;
                    }
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                Some(Ok(_)) => {}
            },
        }
    }
    incoming.interrupt();
}

/// Returns the audit record of a command that the extension refused.
fn refusal_of(text: &str) -> Option<AuditRecord> {
    if !text.contains("\"error\"") {
        return None;
    }
    let answer: Value = serde_json::from_str(text).ok()?;
    let error = answer.get("error").filter(|it| it["code"] == REFUSED)?;
    let of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Some(record_of(
        "relay.refused",
        &of(&error["data"]["method"]),
        of(&error["message"]),
    ))
}

fn record_of(code: &str, subject: &str, detail: String) -> AuditRecord {
    AuditRecord {
        subject: Some(subject.to_owned()),
        errored: true,
        policy_check_result: format!("refused {code}"),
        detail: Some(detail),
        ..AuditRecord::new(AuditKind::Browser, now_ms(), code)
    }
}

fn nonce_of(headers: &HeaderMap) -> Option<&str> {
    headers
        .get_all(SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .find_map(|word| word.trim().strip_prefix(NONCE))
}

fn digest(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}
