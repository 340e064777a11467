//! Prompts that wait for the turn before them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_stdx::sync::lock;
use tokio::sync::watch;

/// Waiting prompts by session.
#[derive(Debug, Default)]
pub struct WaitingPrompts {
    entries: Mutex<HashMap<SessionId, Vec<Entry>>>,
    next: AtomicU64,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    message: Option<MessageId>,
    /// The running turn has taken it in.
    taken: bool,
    cancel: watch::Sender<bool>,
}

impl WaitingPrompts {
    /// Enters the queue of a session.
    pub fn enter(&self, id: &SessionId, cancel: watch::Sender<bool>) -> InQueue<'_> {
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        let entry = Entry {
            number,
            message: None,
            taken: false,
            cancel,
        };
        lock(&self.entries)
            .entry(id.clone())
            .or_default()
            .push(entry);
        InQueue {
            waiting: self,
            id: id.clone(),
            number,
        }
    }

    /// Returns messages that wait for their turn: no other turn reads them.
    pub fn messages(&self, id: &SessionId) -> BTreeSet<MessageId> {
        let entries = lock(&self.entries);
        entries
            .get(id)
            .into_iter()
            .flatten()
            .filter(|entry| !entry.taken)
            .filter_map(|entry| entry.message.clone())
            .collect()
    }

    /// Removes messages that the running turn has taken in.
    pub fn release(&self, id: &SessionId, messages: &[MessageId]) {
        let mut entries = lock(&self.entries);
        for entry in entries.get_mut(id).into_iter().flatten() {
            entry.taken |= entry.message.as_ref().is_some_and(|m| messages.contains(m));
        }
    }

    /// Returns whether no prompt waits.
    pub fn is_empty(&self) -> bool {
        lock(&self.entries).values().all(Vec::is_empty)
    }

    /// Cancels all waiting prompts of a session; returns true if there were any.
    pub fn cancel(&self, id: &SessionId) -> bool {
        let entries = lock(&self.entries);
        let all = entries.get(id).into_iter().flatten();
        all.filter(|entry| entry.cancel.send(true).is_ok()).count() > 0
    }
}

/// A place in the queue; left when it is dropped.
pub struct InQueue<'a> {
    waiting: &'a WaitingPrompts,
    id: SessionId,
    number: u64,
}

impl InQueue<'_> {
    /// Returns the session of the queue.
    pub fn session(&self) -> &SessionId {
        &self.id
    }

    /// Sets the prompt's message, before it is stored.
    pub fn holds(&self, message: &MessageId) {
        self.with_own(|entry| entry.message = Some(message.clone()));
    }

    fn with_own<T>(&self, look: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        let mut entries = lock(&self.waiting.entries);
        let mut own = entries.get_mut(&self.id).into_iter().flatten();
        own.find(|entry| entry.number == self.number).map(look)
    }

    /// Returns the stored message that waits.
    pub fn message(&self) -> Option<MessageId> {
        self.with_own(|entry| entry.message.clone()).flatten()
    }

    /// Returns whether the running turn has taken it in.
    pub fn is_taken(&self) -> bool {
        self.with_own(|entry| entry.taken) == Some(true)
    }
}

impl Drop for InQueue<'_> {
    fn drop(&mut self) {
        let mut entries = lock(&self.waiting.entries);
        if let Some(own) = entries.get_mut(&self.id) {
            own.retain(|entry| entry.number != self.number);
            if own.is_empty() {
                entries.remove(&self.id);
            }
        }
    }
}
