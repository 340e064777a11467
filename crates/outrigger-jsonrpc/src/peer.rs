//! The other side: requests and notifications sent to it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::message::{RpcError, notice, request};

/// Maximum number of messages that wait to be written; further senders wait.
const MAX_WAITING: usize = 256;

/// The other side. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Peer {
    inner: Arc<PeerState>,
}

#[derive(Debug)]
struct PeerState {
    out: mpsc::Sender<String>,
    next: AtomicU64,
    asked: Mutex<PendingReplies>,
    /// The notification that cancels a request, with `{requestId}`.
    cancel: Option<&'static str>,
}

type Reply = oneshot::Sender<Result<Value, RpcError>>;

#[derive(Debug, Default)]
struct PendingReplies {
    replies: HashMap<u64, Reply>,
    is_closed: bool,
}

/// Lines to write, without their end.
#[derive(Debug)]
pub struct Outbox(mpsc::Receiver<String>);

impl Outbox {
    /// Returns the next line; `None` once there are no more senders.
    pub async fn next(&mut self) -> Option<String> {
        self.0.recv().await
    }

    /// Passes each line with its end to `print`, which may block: run this on its own thread.
    pub fn print(mut self, mut print: impl FnMut(&[u8])) {
        while let Some(mut line) = self.0.blocking_recv() {
            line.push('\n');
            print(line.as_bytes());
        }
    }
}

impl Peer {
    /// Creates a peer that does not listen yet. `cancel`: the notification by which its protocol cancels a request
    /// (`$/cancel_request`).
    #[must_use]
    pub fn new(cancel: Option<&'static str>) -> (Self, Outbox) {
        let (out, lines) = mpsc::channel(MAX_WAITING);
        let inner = Arc::new(PeerState {
            out,
            next: AtomicU64::new(1),
            asked: Mutex::default(),
            cancel,
        });
        (Self { inner }, Outbox(lines))
    }

    /// Sends a request, and waits for the response. Dropping the future cancels the request.
    ///
    /// # Errors
    /// The error of the other side, or it is gone.
    pub async fn request(&self, method: &str, params: &Value) -> Result<Value, RpcError> {
        let gone = || RpcError::new(RpcError::INTERNAL, "the other side is gone");
        let id = self.inner.next.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        {
            let mut asked = self.asked();
            if asked.is_closed {
                return Err(gone());
            }
            asked.replies.insert(id, reply);
        }
        let _waiting = PendingRequest { peer: self, id };
        self.send(request(id, method, params)).await;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Sends a notification.
    pub async fn notify(&self, method: &str, params: &Value) {
        self.send(notice(method, params)).await;
    }

    pub(crate) async fn send(&self, line: String) {
        // A missing reader is not an error: the input ends, too.
        let _ = self.inner.out.send(line).await;
    }

    /// Handles a response.
    pub(crate) fn settle(&self, id: u64, result: Result<Value, RpcError>) {
        let reply = self.asked().replies.remove(&id);
        if let Some(reply) = reply {
            let _ = reply.send(result);
        }
    }

    /// Closes the peer: waiting requests fail.
    pub(crate) fn close(&self) {
        let mut asked = self.asked();
        asked.is_closed = true;
        asked.replies.clear();
    }

    pub(crate) fn cancel_method(&self) -> Option<&'static str> {
        self.inner.cancel
    }

    fn asked(&self) -> MutexGuard<'_, PendingReplies> {
        self.inner
            .asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request whose response is awaited.
struct PendingRequest<'a> {
    peer: &'a Peer,
    id: u64,
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        let is_open = self.peer.asked().replies.remove(&self.id).is_some();
        if let (true, Some(method)) = (is_open, self.peer.inner.cancel) {
            let line = notice(method, &json!({ "requestId": self.id }));
            let _ = self.peer.inner.out.try_send(line);
        }
    }
}
