//! A session's messages, read once and then kept up to date from the log.
//!
//! Decoding a long history costs more than a turn. Every change of a message is an event of the log, so a reader that
//! remembers how far it has read needs only the later events, whichever process wrote them.

use std::collections::BTreeSet;
use std::sync::Arc;

use outrigger_protocol::history::{History, HistoryMessage};
use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::MessageWithParts;
use rusqlite::params;

use crate::error::StoreError;
use crate::project::{Touched, touched};
use crate::read::Reader;
use crate::store::Store;

/// With more changed messages than this, and more than half of all, everything is re-read.
const MAX_CHANGED: usize = 64;

/// The messages of one session as of the last call of [`crate::Store::update_history`]. The default is empty; the first update
/// reads all messages, each later one only those that changed.
#[derive(Clone, Debug, Default)]
pub struct StoredHistory {
    history: History,
    /// Bytes of the stored text of each message.
    sizes: Vec<u32>,
    bytes: usize,
    /// Number of the last record that was read; `None` before the first update.
    seq: Option<i64>,
}

impl StoredHistory {
    /// Returns the messages by id, each with its parts by id. Cheap to clone: unchanged messages are shared with every earlier
    /// state.
    #[must_use]
    pub fn messages(&self) -> &History {
        &self.history
    }

    /// Returns the bytes of the messages' stored JSON text; memory use is about two to four times that.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Updates the messages within the reader's transaction.
    pub(crate) fn update(
        &mut self,
        reader: &Reader<'_>,
        session: &SessionId,
    ) -> Result<(), StoreError> {
        let head = reader.sql(crate::chain::head)?.seq;
        let Some(seen) = self.seq.filter(|seen| *seen <= head) else {
            return self.read_all(reader, session, head);
        };
        if seen == head {
            return Ok(());
        }
        let Some(changed) = changed_since(reader, session, seen)? else {
            return self.read_all(reader, session, head);
        };
        if changed.len() > MAX_CHANGED && changed.len() > self.history.len() / 2 {
            return self.read_all(reader, session, head);
        }
        for id in changed {
            let found = reader.sized_message(session, &id)?;
            self.put(&id, found);
        }
        self.seq = Some(head);
        Ok(())
    }

    fn read_all(
        &mut self,
        reader: &Reader<'_>,
        session: &SessionId,
        head: i64,
    ) -> Result<(), StoreError> {
        let before = std::mem::take(self);
        let found = reader.sized_messages(session)?;
        self.sizes = found.iter().map(|(_, size)| *size).collect();
        self.bytes = self.sizes.iter().map(|size| *size as usize).sum();
        self.history = found.into_iter().map(|(message, _)| message).collect();
        self.history.renew(&before.history);
        self.seq = Some(head);
        Ok(())
    }

    /// Inserts, replaces or removes a message.
    fn put(&mut self, id: &MessageId, found: Option<(MessageWithParts, u32)>) {
        let place = self
            .history
            .partition_point(|message| message.id().is_some_and(|it| it < id.as_str()));
        let known = self.history.get(place);
        let is_known = known.is_some_and(|message| message.id() == Some(id.as_str()));
        match (found, is_known) {
            (None, false) => {}
            (None, true) => {
                self.bytes -= self.sizes.remove(place) as usize;
                let mut messages: Vec<_> = self.history.iter().cloned().collect();
                messages.remove(place);
                self.replace(messages);
            }
            (Some((message, size)), true) => {
                let old = self.sizes.get_mut(place);
                let old = old.map_or(0, |old| std::mem::replace(old, size));
                self.bytes = self.bytes - old as usize + size as usize;
                let new = HistoryMessage::from(message);
                if known.is_none_or(|known| known.stored() != new.stored()) {
                    self.history.set(place, new);
                }
            }
            (Some((message, size)), false) => {
                self.bytes += size as usize;
                self.sizes.insert(place, size);
                let message = Arc::new(HistoryMessage::from(message));
                if place == self.history.len() {
                    self.history.push(message);
                } else {
                    let mut messages: Vec<_> = self.history.iter().cloned().collect();
                    messages.insert(place, message);
                    self.replace(messages);
                }
            }
        }
    }

    fn replace(&mut self, messages: Vec<Arc<HistoryMessage>>) {
        let mut history = History::of(messages);
        history.share(&self.history);
        self.history = history;
    }
}

impl Store {
    /// The newest messages of a session, at most so many, in ascending order; only those with an identifier below `before`,
    /// where that is given. Costs what it returns.
    ///
    /// # Errors
    /// As [`Store::session`].
    pub fn newest_messages(
        &self,
        session: &SessionId,
        before: Option<&MessageId>,
        most: usize,
    ) -> Result<Vec<MessageWithParts>, StoreError> {
        self.readers()
            .read(|r| r.newest_messages(session, before, most))
    }

    /// The same, and the number of the log's last record at that moment: what comes after it is not in them.
    ///
    /// # Errors
    /// As [`Store::session`].
    pub fn newest_messages_at(
        &self,
        session: &SessionId,
        before: Option<&MessageId>,
        most: usize,
    ) -> Result<(i64, Vec<MessageWithParts>), StoreError> {
        self.readers().read(|r| {
            let head = r.sql(crate::chain::head)?.seq;
            Ok((head, r.newest_messages(session, before, most)?))
        })
    }

    /// Brings the messages of a session up to date: what was committed before, by whichever process, is in it. Always called
    /// with the same session for the same history.
    ///
    /// # Errors
    /// As [`Store::session`]. The history knows nothing then, and the next update reads all of it.
    pub fn update_history(
        &self,
        session: &SessionId,
        history: &mut StoredHistory,
    ) -> Result<(), StoreError> {
        let updated = self.readers().read(|r| history.update(r, session));
        updated.inspect_err(|_| *history = StoredHistory::default())
    }
}

/// Returns the messages that changed after a record; `None` if any of them may have.
fn changed_since(
    reader: &Reader<'_>,
    session: &SessionId,
    seen: i64,
) -> Result<Option<BTreeSet<MessageId>>, StoreError> {
    reader.sql(|conn| {
        let mut statement = conn.prepare_cached(
            "SELECT body FROM log INDEXED BY log_session WHERE session = ? AND kind = 'event' AND seq > ?",
        )?;
        let mut rows = statement.query(params![session.as_str(), seen])?;
        let mut changed = BTreeSet::new();
        while let Some(row) = rows.next()? {
            match touched(row.get_ref(0)?.as_str()?) {
                Touched::Nothing => {}
                Touched::Message(id) => {
                    changed.insert(MessageId(id));
                }
                Touched::All => return Ok(None),
            }
        }
        Ok(Some(changed))
    })
}
