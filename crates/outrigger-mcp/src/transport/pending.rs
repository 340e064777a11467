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
use crate::wire::{Id, Refusal};

type Answer = Result<Result<Value, Refusal>, McpError>;

struct Waiting {
    answer: oneshot::Sender<Answer>,
    progress: Arc<Notify>,
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
}

/// A request's side of waiting.
pub(crate) struct Ticket {
    pub(crate) id: Id,
    pub(crate) answer: oneshot::Receiver<Answer>,
    /// Notified at each report of progress.
    pub(crate) progress: Arc<Notify>,
}

/// What a request is, for the one who waits for its answer.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) server: &'a str,
    pub(crate) method: &'a str,
    /// Longest wait since it was made or last reported progress.
    pub(crate) wait: Duration,
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
        mut self,
        asked: Asked<'_>,
        mut deadline: Instant,
    ) -> Result<Value, McpError> {
        let result = loop {
            tokio::select! {
                result = &mut self.answer => break result,
                () = self.progress.notified() => deadline = Instant::now() + asked.wait,
                () = sleep_until(deadline) => return Err(asked.late()),
            }
        };
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
}

impl Pending {
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
    pub(crate) fn begin(&self) -> Result<Ticket, McpError> {
        let id = self.number();
        let (sender, answer) = oneshot::channel();
        let progress = Arc::new(Notify::new());
        let mut table = self.table();
        if let Some(error) = &table.closed {
            return Err(error.clone());
        }
        table.waiting.insert(
            id,
            Waiting {
                answer: sender,
                progress: Arc::clone(&progress),
            },
        );
        Ok(Ticket {
            id,
            answer,
            progress,
        })
    }

    /// Hands an answer over; false when nobody waits for it (any more).
    pub(crate) fn answer(&self, id: Id, result: Result<Value, Refusal>) -> bool {
        let waiting = self.table().waiting.remove(&id);
        waiting.is_some_and(|waiting| waiting.answer.send(Ok(result)).is_ok())
    }

    /// Tells a request that it makes progress; false when there is none of that number.
    pub(crate) fn progress(&self, id: Id) -> bool {
        let table = self.table();
        let waiting = table.waiting.get(&id);
        if let Some(waiting) = waiting {
            waiting.progress.notify_one();
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
