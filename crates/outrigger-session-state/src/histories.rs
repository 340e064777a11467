//! Messages of sessions in use, decoded once and kept up to date.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use outrigger_prompt::history::grown::Grown;
use outrigger_protocol::history::History;
use outrigger_protocol::id::{CallId, MessageId, SessionId};
use outrigger_protocol::message::MessageWithParts;
use outrigger_stdx::sync::lock;
use outrigger_store::{Store, StoreError, StoredHistory};

use crate::facts::{Facts, KeptFacts};

/// Maximum bytes of stored text for all cached histories, except the last used one, which may be larger.
const MAX_BYTES: usize = 48 << 20;
/// Time after which an unused history is dropped.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Histories by session.
#[derive(Debug, Default)]
pub struct Histories(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    of: HashMap<SessionId, Entry>,
    /// A task is running that drops idle histories.
    is_swept: bool,
}

#[derive(Debug)]
struct Entry {
    cached: Arc<Mutex<CachedHistory>>,
    used: Instant,
    bytes: usize,
}

#[derive(Debug, Default)]
struct CachedHistory {
    stored: StoredHistory,
    facts: KeptFacts,
    grown: Grown,
}

/// The messages of a session with their summary.
#[derive(Clone, Debug)]
pub struct Conversation {
    /// Sorted by id, as stored.
    pub history: History,
    /// What is known of the history without reading it again.
    pub facts: Facts,
}

impl Conversation {
    /// Returns the position of a message.
    #[must_use]
    pub fn position(&self, id: &str) -> Option<usize> {
        position(&self.history, id)
    }

    /// Returns a message.
    #[must_use]
    pub fn message(&self, id: &MessageId) -> Option<&MessageWithParts> {
        self.history.get(self.position(id.as_str())?)?.stored()
    }

    /// Returns the tokens of the last finished step.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.facts.used.tokens(|id| self.position(id))
    }
}

/// Returns the position of a message in a stored history.
fn position(history: &History, id: &str) -> Option<usize> {
    let position = history.partition_point(|message| message.id().is_some_and(|other| other < id));
    let found = history.get(position)?.id() == Some(id);
    found.then_some(position)
}

impl Histories {
    /// Returns the messages of a session as stored now, sorted by id.
    ///
    /// # Errors
    /// Those of the store.
    pub fn messages(&self, store: &Store, id: &SessionId) -> Result<History, StoreError> {
        self.read(store, id, |cached| cached.stored.messages().clone())
    }

    /// Returns the messages that a request is made from, in order: see [`as_read`](outrigger_prompt::history::read::as_read).
    ///
    /// # Errors
    /// Those of the store.
    pub fn as_read(
        &self,
        store: &Store,
        id: &SessionId,
        current: Option<&MessageId>,
        waiting: &BTreeSet<MessageId>,
        own: &MessageId,
    ) -> Result<History, StoreError> {
        self.read(store, id, |cached| {
            let stored = cached.stored.messages();
            cached.grown.as_read(stored, current, waiting, own)
        })
    }

    /// Returns the messages of a session with their summary.
    ///
    /// # Errors
    /// Those of the store.
    pub fn conversation(
        &self,
        store: &Store,
        worktree: &Path,
        id: &SessionId,
    ) -> Result<Conversation, StoreError> {
        self.read(store, id, |cached| {
            let history = cached.stored.messages().clone();
            let facts = cached.facts.of(&history, worktree);
            Conversation { history, facts }
        })
    }

    /// Returns whether a tool call of a session used this id.
    ///
    /// # Errors
    /// Those of the store.
    pub fn has_call(
        &self,
        store: &Store,
        worktree: &Path,
        session: &SessionId,
        id: &CallId,
    ) -> Result<bool, StoreError> {
        self.read(store, session, |cached| {
            cached
                .facts
                .has_call(cached.stored.messages(), worktree, id)
        })
    }

    /// Calls `read` with the cached session, updated to the stored state.
    fn read<T>(
        &self,
        store: &Store,
        id: &SessionId,
        read: impl FnOnce(&mut CachedHistory) -> T,
    ) -> Result<T, StoreError> {
        let cached = {
            let mut entries = lock(&self.0);
            let entry = entries.of.entry(id.clone());
            let entry = entry.or_insert_with(|| Entry {
                cached: Arc::default(),
                used: Instant::now(),
                bytes: 0,
            });
            entry.used = Instant::now();
            Arc::clone(&entry.cached)
        };
        let (found, bytes) = {
            let mut cached = lock(&cached);
            store.update_history(id, &mut cached.stored)?;
            (read(&mut cached), cached.stored.bytes())
        };
        let mut entries = lock(&self.0);
        if let Some(entry) = entries.of.get_mut(id) {
            entry.bytes = bytes;
        }
        entries.keep_within(MAX_BYTES, id);
        self.sweep(&mut entries);
        Ok(found)
    }

    /// Starts the task that drops idle histories, unless it is running. It ends with the last history.
    fn sweep(&self, entries: &mut Entries) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if !std::mem::replace(&mut entries.is_swept, true) {
            let entries = Arc::downgrade(&self.0);
            runtime.spawn(sweep(entries));
        }
    }
}

async fn sweep(entries: Weak<Mutex<Entries>>) {
    loop {
        tokio::time::sleep(IDLE_TIMEOUT / 2).await;
        let Some(entries) = entries.upgrade() else {
            return;
        };
        let mut entries = lock(&entries);
        entries.drop_idle(Instant::now());
        if entries.of.is_empty() {
            entries.of.shrink_to_fit();
            entries.is_swept = false;
            return;
        }
    }
}

impl Entries {
    fn drop_idle(&mut self, now: Instant) {
        let is_used = |used: Instant| now.saturating_duration_since(used) < IDLE_TIMEOUT;
        self.of.retain(|_, entry| is_used(entry.used));
    }

    /// Drops the least recently used histories until the rest fits, but never that of `current`.
    fn keep_within(&mut self, most: usize, current: &SessionId) {
        let mut bytes: usize = self.of.values().map(|entry| entry.bytes).sum();
        while bytes > most {
            let others = self.of.iter().filter(|(id, _)| *id != current);
            let oldest = others.min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(id, _)| id.clone()) else {
                return;
            };
            let dropped = self.of.remove(&oldest);
            bytes -= dropped.map_or(0, |entry| entry.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_goes_first_and_what_is_idle_goes() {
        let id = |n: u64| SessionId(format!("ses_{n}"));
        let mut entries = Entries::default();
        let began = Instant::now();
        for n in 0..5 {
            let entry = Entry {
                cached: Arc::default(),
                used: began + Duration::from_secs(n),
                bytes: 10,
            };
            entries.of.insert(id(n), entry);
        }
        let left = |entries: &Entries| {
            let mut left: Vec<String> = entries.of.keys().map(|id| id.0.clone()).collect();
            left.sort();
            left.join(" ")
        };
        entries.keep_within(30, &id(0));
        assert_eq!(left(&entries), "ses_0 ses_3 ses_4");
        entries.drop_idle(began + Duration::from_secs(3) + IDLE_TIMEOUT);
        assert_eq!(left(&entries), "ses_4");
        entries.keep_within(5, &id(4));
        assert_eq!(left(&entries), "ses_4", "the one in use, whatever its size");
    }
}
