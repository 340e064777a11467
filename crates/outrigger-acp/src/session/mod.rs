//! A session that is open in the editor.

pub(crate) mod opening;
pub(crate) mod options;
pub(crate) mod servers;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outrigger_client::Connection;
use outrigger_protocol::id::SessionId;
use tokio::sync::watch;

use crate::session::options::{Chosen, Offer};

/// A session while it is open in the editor.
pub(crate) struct OpenSession {
    pub(crate) id: SessionId,
    pub(crate) folder: PathBuf,
    pub(crate) connection: Connection,
    /// The available choices, as of opening the session.
    pub(crate) offer: Offer,
    /// Names of slash commands.
    pub(crate) commands: Vec<String>,
    chosen: Mutex<Chosen>,
    /// Messages for the user that have not been sent yet.
    notices: Mutex<Vec<String>>,
    /// A turn waits for the one before it.
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// Counts cancellations: a prompt received before one is cancelled.
    cancels: watch::Sender<u64>,
}

impl OpenSession {
    pub(crate) fn new(
        id: SessionId,
        folder: PathBuf,
        connection: Connection,
        offer: Offer,
        chosen: Chosen,
    ) -> Self {
        Self {
            id,
            folder,
            connection,
            offer,
            commands: Vec::new(),
            chosen: Mutex::new(chosen),
            notices: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            cancels: watch::Sender::new(0),
        }
    }

    pub(crate) fn chosen(&self) -> MutexGuard<'_, Chosen> {
        self.chosen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the messages to send before the next answer.
    pub(crate) fn notices(&self) -> MutexGuard<'_, Vec<String>> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels every prompt received so far.
    pub(crate) fn cancel(&self) {
        self.cancels.send_modify(|count| *count += 1);
    }

    /// Returns a future that resolves once a prompt received now is cancelled.
    pub(crate) fn cancelled(&self) -> Cancelled {
        Cancelled {
            count: *self.cancels.borrow(),
            cancels: self.cancels.subscribe(),
        }
    }
}

/// Waits for the cancellation of a prompt.
#[derive(Debug)]
pub(crate) struct Cancelled {
    count: u64,
    cancels: watch::Receiver<u64>,
}

impl Cancelled {
    pub(crate) fn is_now(&self) -> bool {
        *self.cancels.borrow() != self.count
    }

    pub(crate) async fn wait(&mut self) {
        let count = self.count;
        if self.cancels.wait_for(|now| *now != count).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The open sessions.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<Vec<Arc<OpenSession>>>);

impl Sessions {
    pub(crate) fn find(&self, id: &str) -> Option<Arc<OpenSession>> {
        self.list().iter().find(|it| it.id.as_str() == id).cloned()
    }

    pub(crate) fn put(&self, open: Arc<OpenSession>) {
        let mut list = self.list();
        list.retain(|it| it.id != open.id);
        list.push(open);
    }

    /// Removes a session, and cancels what runs in it.
    pub(crate) fn remove(&self, id: &str) {
        self.list().retain(|it| {
            let stays = it.id.as_str() != id;
            if !stays {
                it.cancel();
            }
            stays
        });
    }

    pub(crate) fn cancel_all(&self) {
        self.list().iter().for_each(|it| it.cancel());
    }

    fn list(&self) -> MutexGuard<'_, Vec<Arc<OpenSession>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
