//! A small client of the DevTools protocol: JSON messages over a pipe or a WebSocket, commands with their answers, events. Why no
//! library is used: `docs/decisions/0020-cdp-client.md`.

pub(crate) mod extension;
pub(crate) mod launch;
mod pipe;
mod websocket;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_sandbox::process_time::timeout;
use outrigger_stdx::sync::lock;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};

pub(crate) use self::pipe::over_pipe;
pub(crate) use self::websocket::over_websocket;
use crate::error::BrowserError;

/// Maximum size of a message, in bytes: a screenshot of a long page, in Base64.
const MAX_MESSAGE: usize = 128 * 1024 * 1024;
/// Published when the connection is interrupted: the state of the browser is unknown afterwards.
pub(crate) const AWAY: &str = "Outrigger.away";
/// Default timeout of a command.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// An event, with the session of its target; empty for the browser itself.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) session: String,
    pub(crate) method: String,
    pub(crate) params: Value,
}

type Answer = Result<Value, String>;

#[derive(Default)]
struct Pending {
    waiting: HashMap<u64, oneshot::Sender<Answer>>,
    /// Why no more messages will arrive.
    closed: Option<String>,
    /// The connection is lost, and may be restored.
    is_away: bool,
    /// How often it was lost.
    losses: u64,
}

/// A connection to a browser. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Connection {
    shared: Arc<Shared>,
}

struct Shared {
    pending: Mutex<Pending>,
    next: AtomicU64,
    outgoing: mpsc::UnboundedSender<String>,
    gone: watch::Sender<bool>,
    /// The browser is connected.
    there: watch::Sender<bool>,
}

/// The transport side of a connection: outgoing messages, and the receiver of incoming ones.
pub(crate) struct Wire {
    pub(crate) outgoing: mpsc::UnboundedReceiver<String>,
    pub(crate) incoming: Incoming,
}

/// Receives messages of a browser.
#[derive(Clone)]
pub(crate) struct Incoming {
    shared: Arc<Shared>,
    events: mpsc::UnboundedSender<Event>,
}

impl Connection {
    /// Returns a connection and its transport side; events arrive in order.
    pub(crate) fn new() -> (Self, Wire, mpsc::UnboundedReceiver<Event>) {
        let (outgoing, written) = mpsc::unbounded_channel();
        let (events, published) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            pending: Mutex::default(),
            next: AtomicU64::new(1),
            outgoing,
            gone: watch::Sender::new(false),
            there: watch::Sender::new(true),
        });
        let incoming = Incoming {
            shared: Arc::clone(&shared),
            events,
        };
        (
            Self { shared },
            Wire {
                outgoing: written,
                incoming,
            },
            published,
        )
    }

    /// The same for a browser that is not connected yet: [`Incoming::resume`] reports when it is.
    pub(crate) fn awaited() -> (Self, Wire, mpsc::UnboundedReceiver<Event>) {
        let made = Self::new();
        lock(&made.0.shared.pending).is_away = true;
        made.0.shared.there.send_replace(false);
        made
    }

    /// Waits until the browser is connected; returns whether it is. A transport that cannot be interrupted always is.
    pub(crate) async fn is_back(&self, wait: Duration) -> bool {
        let mut there = self.shared.there.subscribe();
        let back = there.wait_for(|there| *there);
        timeout(wait, back).await.is_ok_and(|it| it.is_ok())
    }

    /// Returns how often the connection was lost so far.
    pub(crate) fn losses(&self) -> u64 {
        lock(&self.shared.pending).losses
    }

    /// Sends a command and waits for its answer.
    ///
    /// # Errors
    /// [`BrowserError::Refused`], [`BrowserError::Lost`].
    pub(crate) async fn call(
        &self,
        session: &str,
        method: &str,
        params: Value,
    ) -> Result<Value, BrowserError> {
        self.call_within(session, method, params, ANSWER_TIMEOUT)
            .await
    }

    /// The same with a separate timeout.
    pub(crate) async fn call_within(
        &self,
        session: &str,
        method: &str,
        params: Value,
        wait: Duration,
    ) -> Result<Value, BrowserError> {
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        {
            let mut pending = lock(&self.shared.pending);
            if let Some(cause) = pending.closed.clone() {
                return Err(BrowserError::Lost { cause });
            }
            if pending.is_away {
                return Err(BrowserError::Lost {
                    cause: "is not connected through its extension".to_owned(),
                });
            }
            pending.waiting.insert(id, sender);
        }
        let _waiting = Waiting {
            shared: &self.shared,
            id,
        };
        self.shared.send(id, session, method, &params);
        match timeout(wait, answer).await {
            Ok(Ok(Ok(value))) => Ok(value),
            Ok(Ok(Err(message))) => Err(BrowserError::Refused {
                method: method.to_owned(),
                message,
            }),
            Ok(Err(_)) => Err(self.lost()),
            Err(_) => Err(BrowserError::Lost {
                cause: format!("did not answer {method} within {} s", wait.as_secs()),
            }),
        }
    }

    /// Sends a command without waiting for its answer.
    pub(crate) fn post(&self, session: &str, method: &str, params: &Value) {
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        self.shared.send(id, session, method, params);
    }

    /// Closes the connection; attached targets continue.
    pub(crate) fn close(&self) {
        // An empty message marks the end.
        let _ = self.shared.outgoing.send(String::new());
    }

    /// Returns whether the browser is gone.
    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.shared.pending).closed.is_some()
    }

    /// Completes when the browser is gone.
    pub(crate) async fn closed(&self) {
        let mut gone = self.shared.gone.subscribe();
        // An error means that the sender, and with it the connection, is gone.
        let _ = gone.wait_for(|gone| *gone).await;
    }

    fn lost(&self) -> BrowserError {
        let cause = lock(&self.shared.pending).closed.clone();
        BrowserError::Lost {
            cause: cause
                .unwrap_or_else(|| "did not answer before its connection was lost".to_owned()),
        }
    }
}

impl Shared {
    fn send(&self, id: u64, session: &str, method: &str, params: &Value) {
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let (false, Some(fields)) = (session.is_empty(), message.as_object_mut()) {
            fields.insert("sessionId".to_owned(), session.into());
        }
        // If the writer is gone, the reader knows the reason.
        let _ = self.outgoing.send(message.to_string());
    }
}

struct Waiting<'a> {
    shared: &'a Shared,
    id: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        lock(&self.shared.pending).waiting.remove(&self.id);
    }
}

impl Incoming {
    /// Handles a message of the browser.
    fn take(&self, message: &[u8]) -> Result<(), String> {
        let mut message: Value = serde_json::from_slice(message)
            .map_err(|error| format!("sent an invalid message ({error})"))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if let Some(id) = message.get("id").and_then(Value::as_u64) {
            if let Some(waiting) = lock(&self.shared.pending).waiting.remove(&id) {
                let answer = match message.get("error") {
                    Some(error) => Err(text(&error["message"])),
                    None => Ok(message["result"].take()),
                };
                // The caller no longer waits.
                let _ = waiting.send(answer);
            }
            return Ok(());
        }
        let event = Event {
            session: text(&message["sessionId"]),
            method: text(&message["method"]),
            params: message["params"].take(),
        };
        // The provider is gone.
        let _ = self.events.send(event);
        Ok(())
    }

    /// The browser has connected, for the first time or again.
    fn resume(&self) {
        lock(&self.shared.pending).is_away = false;
        self.shared.there.send_replace(true);
    }

    /// The connection is lost, and may be restored. The outcome of pending commands is unknown.
    fn interrupt(&self) {
        self.shared.there.send_replace(false);
        {
            let mut pending = lock(&self.shared.pending);
            pending.is_away = true;
            pending.losses += 1;
            pending.waiting.clear();
        }
        let away = Event {
            session: String::new(),
            method: AWAY.to_owned(),
            params: Value::Null,
        };
        // The provider is gone.
        let _ = self.events.send(away);
    }

    /// No more messages will arrive.
    fn close(&self, cause: String) {
        {
            let mut pending = lock(&self.shared.pending);
            pending.closed.get_or_insert(cause);
            pending.waiting.clear();
        }
        self.shared.gone.send_replace(true);
    }
}
