//! Requests that wait for an answer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use outrigger_files::sync::lock;
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::error::McpError;
use crate::requests::{Asks, OpenRequests};
use crate::transport::incoming::RootList;
use crate::transport::quota::Quota;
use crate::wire::{Id, RpcError};

const LOG_LINES_A_SECOND: u64 = 50;

type Answer = Result<Result<Value, RpcError>, McpError>;

struct Waiting {
    answer: oneshot::Sender<Answer>,
    open: Arc<OpenRequests>,
    // Where the server's own requests go while it runs; only calls have that.
    asks: Option<Asks>,
}

#[derive(Default)]
struct Table {
    waiting: HashMap<Id, Waiting>,
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

/// A request's side of waiting.
pub(crate) struct Ticket {
    pub(crate) id: Id,
    pub(crate) answer: oneshot::Receiver<Answer>,
    /// Notified at each report of progress.
    pub(crate) open: Arc<OpenRequests>,
}

/// What a request is, for the one who waits for its answer.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) server: &'a str,
    pub(crate) method: &'a str,
    /// Longest wait since it was made or last reported progress.
    pub(crate) wait: Duration,
}

/// A request of ours.
#[derive(Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: &'a Value,
    pub(crate) wait: Duration,
    /// Who answers what the server requests meanwhile.
    pub(crate) asks: Option<&'a Asks>,
}

impl<'a> Outgoing<'a> {
    pub(crate) fn asked(&self, server: &'a str) -> Asked<'a> {
        Asked {
            server,
            method: self.method,
            wait: self.wait,
        }
    }
}

impl Asked<'_> {
    pub(crate) fn late(&self) -> McpError {
        McpError::Timeout {
            server: self.server.to_owned(),
            what: self.method.to_owned(),
            after: self.wait,
        }
    }
}

impl Ticket {
    /// The parameters with the number by which the server reports progress; only calls have one.
    pub(crate) fn marked(&self, method: &str, params: &Value) -> Value {
        let mut params = params.clone();
        if method == "tools/call" {
            params["_meta"] = json!({"progressToken": self.id});
        }
        params
    }

    /// The answer, waited for until the deadline, which each report of progress puts off.
    ///
    /// # Errors
    /// [`McpError::Timeout`], [`McpError::Refused`], and why the connection was closed.
    pub(crate) async fn answered(
        &mut self,
        asked: Asked<'_>,
        mut deadline: Instant,
    ) -> Result<Value, McpError> {
        let result = loop {
            tokio::select! {
                result = &mut self.answer => break result,
                () = self.open.progress.notified() => deadline = Instant::now() + asked.wait,
                () = sleep_until(deadline) => match self.open.any() {
                    // It waits for us, not we for it.
                    true => deadline = Instant::now() + asked.wait,
                    false => return Err(asked.late()),
                },
            }
        };
        settled(asked, result)
    }

    /// The answer, where it is there already.
    pub(crate) fn taken(&mut self, asked: Asked<'_>) -> Option<Result<Value, McpError>> {
        let answer = self.answer.try_recv().ok()?;
        Some(settled(asked, Ok(answer)))
    }
}

fn settled(
    asked: Asked<'_>,
    result: Result<Answer, oneshot::error::RecvError>,
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
    /// Requests of a connection whose server gets these folders.
    pub(crate) fn new(roots: RootList) -> Self {
        let mut pending = Self::default();
        pending.roots = roots;
        pending
    }

    /// Whether a line of the server's log is taken over: so many in a second.
    pub(crate) fn may_log(&self) -> bool {
        let mut logged = lock(&self.logged);
        let quota = logged.get_or_insert_with(|| Quota::new(LOG_LINES_A_SECOND));
        quota.take(1).within
    }

    pub(crate) fn roots(&self) -> &RootList {
        &self.roots
    }

    /// Who answers a request of the server: the call in whose answer it came, else the one that was made last.
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

    /// Notified when the server's tools have changed, and when the connection has closed.
    pub(crate) fn news(&self) -> Arc<Notify> {
        Arc::clone(&self.list_changed)
    }

    /// The server's tools have changed.
    pub(crate) fn list_changed(&self) {
        self.list_changed.notify_one();
    }

    /// A number for a request.
    pub(crate) fn number(&self) -> Id {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Begins to wait.
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
            Waiting {
                answer: sender,
                open: Arc::clone(&open),
                asks: asks.cloned(),
            },
        );
        Ok(Ticket { id, answer, open })
    }

    /// Hands an answer over; false when nobody waits for it (any more).
    pub(crate) fn answer(&self, id: Id, result: Result<Value, RpcError>) -> bool {
        let waiting = self.table().waiting.remove(&id);
        waiting.is_some_and(|waiting| waiting.answer.send(Ok(result)).is_ok())
    }

    /// Tells a request that it makes progress; false when there is none of that number.
    pub(crate) fn progress(&self, id: Id) -> bool {
        let table = self.table();
        let waiting = table.waiting.get(&id);
        if let Some(waiting) = waiting {
            waiting.open.progress.notify_one();
        }
        waiting.is_some()
    }

    /// Stops waiting; false when the answer is there already.
    pub(crate) fn give_up(&self, id: Id) -> bool {
        self.table().waiting.remove(&id).is_some()
    }

    /// Closes: all waiting requests fail with the error. The first cause counts.
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

    /// Why it is closed, if it is.
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
