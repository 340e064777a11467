//! Messages to a client while its request is answered: progress, log messages, and requests of our own.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::server::Caller;

/// Maximum number of queued messages to a client. Further progress and log messages are dropped, requests wait.
pub(crate) const WAITING: usize = 64;
/// Maximum number of subscribed resources.
const MAX_SUBSCRIBED: usize = 256;

/// The severity of a log message, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the levels of syslog, by their names")]
pub enum Level {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl Level {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Debug, "debug"),
        (Self::Info, "info"),
        (Self::Notice, "notice"),
        (Self::Warning, "warning"),
        (Self::Error, "error"),
        (Self::Critical, "critical"),
        (Self::Alert, "alert"),
        (Self::Emergency, "emergency"),
    ];

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(level, _)| *level)
    }

    fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(level, _)| *level == self)
            .map_or("info", |(_, name)| name)
    }
}

/// The client of a connection.
pub(crate) struct Client {
    pub(crate) name: String,
    /// Its declared capabilities.
    pub(crate) capabilities: Value,
    /// The minimum level of log messages.
    pub(crate) level: Level,
    /// Resources whose changes it is notified of.
    subscribed: HashSet<String>,
}

impl Client {
    /// Returns `false` if there are too many already.
    pub(crate) fn subscribe(&mut self, uri: &str) -> bool {
        let has_room = self.subscribed.len() < MAX_SUBSCRIBED || self.subscribed.contains(uri);
        if has_room {
            self.subscribed.insert(uri.to_owned());
        }
        has_room
    }

    pub(crate) fn unsubscribe(&mut self, uri: &str) {
        self.subscribed.remove(uri);
    }

    pub(crate) fn wants(&self, uri: &str) -> bool {
        self.subscribed.contains(uri)
    }
}

impl Default for Client {
    fn default() -> Self {
        Self {
            name: "a client".to_owned(),
            capabilities: Value::Null,
            level: Level::Info,
            subscribed: HashSet::new(),
        }
    }
}

/// Our own requests that the client has not answered, by their identifiers.
#[derive(Default)]
pub(crate) struct Pending {
    next: AtomicU64,
    waiting: Mutex<HashMap<String, oneshot::Sender<Result<Value, String>>>>,
}

impl Pending {
    fn waiting(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<Result<Value, String>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles a response of the client. An unexpected one is ignored.
    pub(crate) fn answered(&self, message: &Value) {
        let id = message["id"].as_str().unwrap_or_default();
        let Some(sender) = self.waiting().remove(id) else {
            return;
        };
        let answer = match message.get("result") {
            Some(result) => Ok(result.clone()),
            None => {
                let reason = message.pointer("/error/message").and_then(Value::as_str);
                Err(reason.unwrap_or("the client refused").to_owned())
            }
        };
        // The caller may be gone.
        let _ = sender.send(answer);
    }
}

/// Removes a request of ours from [`Pending`] when its caller stops waiting.
struct PendingRequest<'a>(&'a Pending, String);

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        self.0.waiting().remove(&self.1);
    }
}

/// A request of the client in progress.
pub struct Exchange {
    pub(crate) caller: Caller,
    pub(crate) client: Arc<Mutex<Client>>,
    pub(crate) pending: Arc<Pending>,
    pub(crate) token: Option<Value>,
    pub(crate) out: mpsc::Sender<Value>,
}

impl Exchange {
    /// Returns the caller.
    #[must_use]
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Reports progress if the client wants it; `progress` must grow.
    pub fn progress(&self, progress: u64, total: Option<u64>, message: Option<&str>) {
        let Some(token) = &self.token else { return };
        let mut params = json!({"progressToken": token, "progress": progress});
        if let Some(total) = total {
            params["total"] = total.into();
        }
        if let Some(message) = message {
            params["message"] = message.into();
        }
        self.notify("notifications/progress", params);
    }

    /// Sends a log message if the client wants its level.
    pub fn log(&self, level: Level, logger: &str, data: Value) {
        if level >= self.client().level {
            let params = json!({"level": level.name(), "logger": logger, "data": data});
            self.notify("notifications/message", params);
        }
    }

    /// Requests an answer of the client's model (`sampling/createMessage`).
    ///
    /// # Errors
    /// The client does not support it, or refuses.
    pub async fn sample(&self, params: Value) -> Result<Value, String> {
        self.request("sampling", "sampling/createMessage", params)
            .await
    }

    /// Requests the client's user to fill in a form (`elicitation/create`).
    ///
    /// # Errors
    /// The client does not support it, or refuses; a user who declines is not an error.
    pub async fn elicit(&self, params: Value) -> Result<Value, String> {
        self.request("elicitation", "elicitation/create", params)
            .await
    }

    async fn request(&self, needs: &str, method: &str, params: Value) -> Result<Value, String> {
        if self.client().capabilities[needs].is_null() {
            return Err(format!("the client does not offer {needs}"));
        }
        let number = self.pending.next.fetch_add(1, Ordering::Relaxed);
        let id = format!("outrigger-{number}");
        let (sender, answer) = oneshot::channel();
        self.pending.waiting().insert(id.clone(), sender);
        let _waiting = PendingRequest(&self.pending, id.clone());
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let gone = |_| "the client takes no requests during a call".to_owned();
        self.out.send(request).await.map_err(gone)?;
        answer
            .await
            .unwrap_or_else(|_| Err("the client is gone".to_owned()))
    }

    /// A slow client misses some of them, and delays nothing.
    fn notify(&self, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let _ = self.out.try_send(message);
    }

    fn client(&self) -> MutexGuard<'_, Client> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
