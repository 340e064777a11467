//! Requests that wait for a response.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use outrigger_sandbox::process_time::{Instant, sleep_until};
use outrigger_stdx::sync::lock;
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

use crate::error::McpError;
use crate::requests::{Asks, OpenRequests};
use crate::transport::incoming::RootList;
use crate::transport::quota::Quota;
use crate::wire::{self, Id, RpcError};

const LOG_LINES_A_SECOND: u64 = 50;

type RpcResult = Result<Result<Value, RpcError>, McpError>;

struct PendingRequest {
    answer: oneshot::Sender<RpcResult>,
    open: Arc<OpenRequests>,
    // Receives the server's requests in the meantime; only for calls.
    asks: Option<Asks>,
}

#[derive(Default)]
struct Table {
    waiting: HashMap<Id, PendingRequest>,
    closed: Option<McpError>,
}

/// The requests of one connection. Once closed it stays closed.
#[derive(Default)]
pub(crate) struct Pending {
    table: Mutex<Table>,
    next: AtomicU64,
    list_changed: Arc<Notify>,
    roots: RootList,
    logged: Mutex<Option<Quota>>,
}

/// A waiting request.
pub(crate) struct Ticket {
    pub(crate) id: Id,
    pub(crate) answer: oneshot::Receiver<RpcResult>,
    /// Notified at each progress report.
    pub(crate) open: Arc<OpenRequests>,
}

/// Gives up a request whose future is dropped before its answer.
pub(crate) struct CancelOnDrop<'a, F: Fn(String)> {
    pub(crate) pending: &'a Pending,
    pub(crate) id: Id,
    /// Sends the cancellation. `None` for the first exchange, which a client must not cancel (MCP, Cancellation).
    pub(crate) send: Option<F>,
}

impl<F: Fn(String)> Drop for CancelOnDrop<'_, F> {
    fn drop(&mut self) {
        if self.pending.give_up(self.id)
            && let Some(send) = &self.send
        {
            send(wire::cancelled(self.id));
        }
    }
}

/// The properties of a request for its caller.
#[derive(Clone, Copy)]
pub(crate) struct RequestInfo<'a> {
    pub(crate) server: &'a str,
    pub(crate) method: &'a str,
    /// Timeout since it was sent or last reported progress.
    pub(crate) wait: Duration,
}

/// A request of ours.
#[derive(Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: &'a Value,
    pub(crate) wait: Duration,
    /// Answers the server's requests in the meantime.
    pub(crate) asks: Option<&'a Asks>,
}

impl<'a> Outgoing<'a> {
    pub(crate) fn asked(&self, server: &'a str) -> RequestInfo<'a> {
        RequestInfo {
            server,
            method: self.method,
            wait: self.wait,
        }
    }
}

impl RequestInfo<'_> {
    pub(crate) fn late(&self) -> McpError {
        McpError::Timeout {
            server: self.server.to_owned(),
            what: self.method.to_owned(),
            after: self.wait,
        }
    }
}

impl Ticket {
    /// Returns the parameters with the token of progress reports; only calls have one.
    pub(crate) fn marked(&self, method: &str, params: &Value) -> Value {
        let mut params = params.clone();
        if method == "tools/call" {
            params["_meta"] = json!({"progressToken": self.id});
        }
        params
    }

    /// Waits for the response until the deadline, which each progress report extends.
    ///
    /// # Errors
    /// [`McpError::Timeout`], [`McpError::Refused`], and why the connection was closed.
    pub(crate) async fn answered(
        &mut self,
        asked: RequestInfo<'_>,
        mut deadline: Instant,
    ) -> Result<Value, McpError> {
        let result = loop {
            tokio::select! {
                result = &mut self.answer => break result,
                () = self.open.progress.notified() => deadline = Instant::now() + asked.wait,
                () = sleep_until(deadline) => {
                    if !self.open.any() {
                        return Err(asked.late());
                    }
                    // The server waits for us, not the reverse.
                    deadline = Instant::now() + asked.wait;
                }
            }
        };
        settled(asked, result)
    }

    /// Takes the response, if it has arrived.
    pub(crate) fn taken(&mut self, asked: RequestInfo<'_>) -> Option<Result<Value, McpError>> {
        let answer = self.answer.try_recv().ok()?;
        Some(settled(asked, Ok(answer)))
    }
}

fn settled(
    asked: RequestInfo<'_>,
    result: Result<RpcResult, oneshot::error::RecvError>,
) -> Result<Value, McpError> {
    let server = || asked.server.to_owned();
    match result {
        Ok(Ok(Ok(value))) => Ok(value),
        Ok(Ok(Err(refusal))) => Err(McpError::Refused {
            server: server(),
            code: refusal.code,
            message: refusal.message,
        }),
        Ok(Err(closed)) => Err(closed),
        Err(_) => Err(McpError::Closed {
            server: server(),
            cause: "is gone".to_owned(),
        }),
    }
}

impl Pending {
    /// Creates the requests of a connection whose server gets these folders.
    pub(crate) fn new(roots: RootList) -> Self {
        let mut pending = Self::default();
        pending.roots = roots;
        pending
    }

    /// Returns whether another line of the server's log is within the limit per second.
    pub(crate) fn may_log(&self) -> bool {
        let mut logged = lock(&self.logged);
        let quota = logged.get_or_insert_with(|| Quota::new(LOG_LINES_A_SECOND));
        quota.take(1).within
    }

    pub(crate) fn roots(&self) -> &RootList {
        &self.roots
    }

    /// Returns the call that answers a request of the server: the one in whose response it came, otherwise the
    /// latest.
    pub(crate) fn caller(&self, during: Option<Id>) -> Option<(Asks, Arc<OpenRequests>)> {
        let table = self.table();
        let of = |id: &Id| {
            let waiting = table.waiting.get(id)?;
            Some((waiting.asks.clone()?, Arc::clone(&waiting.open)))
        };
        if let Some(found) = during.as_ref().and_then(of) {
            return Some(found);
        }
        let calls = table.waiting.iter().filter(|(_, it)| it.asks.is_some());
        of(calls.map(|(id, _)| id).max()?)
    }

    /// Returns a signal for changes of the server's tools and the end of the connection.
    pub(crate) fn news(&self) -> Arc<Notify> {
        Arc::clone(&self.list_changed)
    }

    /// Records that the server's tools have changed.
    pub(crate) fn list_changed(&self) {
        self.list_changed.notify_one();
    }

    /// Returns a number for a request.
    pub(crate) fn number(&self) -> Id {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Registers a request.
    ///
    /// # Errors
    /// Why the connection is closed.
    pub(crate) fn begin(&self, asks: Option<&Asks>) -> Result<Ticket, McpError> {
        let id = self.number();
        let (sender, answer) = oneshot::channel();
        let open = Arc::new(OpenRequests::default());
        let mut table = self.table();
        if let Some(error) = &table.closed {
            return Err(error.clone());
        }
        table.waiting.insert(
            id,
            PendingRequest {
                answer: sender,
                open: Arc::clone(&open),
                asks: asks.cloned(),
            },
        );
        Ok(Ticket { id, answer, open })
    }

    /// Passes a response on; returns `false` if no request waits for it.
    pub(crate) fn answer(&self, id: Id, result: Result<Value, RpcError>) -> bool {
        let waiting = self.table().waiting.remove(&id);
        waiting.is_some_and(|waiting| waiting.answer.send(Ok(result)).is_ok())
    }

    /// Reports progress to a request; returns `false` if there is none with that number.
    pub(crate) fn progress(&self, id: Id) -> bool {
        let table = self.table();
        let waiting = table.waiting.get(&id);
        if let Some(waiting) = waiting {
            waiting.open.progress.notify_one();
        }
        waiting.is_some()
    }

    /// Stops waiting; returns `false` if the response has already arrived.
    pub(crate) fn give_up(&self, id: Id) -> bool {
        self.table().waiting.remove(&id).is_some()
    }

    /// Closes the connection: all waiting requests fail with the error. The first cause wins.
    pub(crate) fn close(&self, error: &McpError) {
        let mut table = self.table();
        if table.closed.is_some() {
            return;
        }
        table.closed = Some(error.clone());
        self.list_changed.notify_one();
        for (_, waiting) in table.waiting.drain() {
            let _ = waiting.answer.send(Err(error.clone()));
        }
    }

    /// Returns why it is closed, if it is.
    pub(crate) fn closed(&self) -> Option<McpError> {
        self.table().closed.clone()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.list_changed.notify_one();
    }
}
