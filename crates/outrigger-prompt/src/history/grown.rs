//! The history of a session as its turns read it one after the other, while it grows.
//!
//! Nearly every history is read as stored: each answer follows its prompt, and there is no summary. The length of that part is
//! cached, and a turn checks only the newest messages.

use std::collections::BTreeSet;
use std::sync::Arc;

use outrigger_protocol::history::{History, HistoryMessage};
use outrigger_protocol::id::MessageId;

use super::active::is_of_compaction;
use super::order::parent;
use super::read::as_read;

/// Number of newest messages that are checked each time, which includes those that a turn still changes.
const NEWEST: usize = 32;
/// Number of checked messages at which the older ones are cached.
const MAX_NEWEST: usize = 96;

/// Cached facts about the history of a session.
#[derive(Debug, Default)]
pub struct Grown {
    /// The history whose first messages are plain.
    history: History,
    /// Number of plain messages.
    plain: usize,
    /// The open prompt after them.
    asked: CurrentPrompt,
}

/// The prompt that answers belong to while the history is read as stored.
#[derive(Clone, Debug, Default)]
struct CurrentPrompt(Option<MessageId>);

impl CurrentPrompt {
    /// Returns whether a message is read as stored, after those before it.
    fn is_plain(&mut self, message: &HistoryMessage) -> bool {
        let Some(message) = message.stored() else {
            return false;
        };
        if is_of_compaction(message) {
            return false;
        }
        match parent(&message.info) {
            None => {
                self.0 = Some(message.info.id().clone());
                true
            }
            Some(asked) => self.0.as_ref() == Some(asked),
        }
    }
}

impl Grown {
    /// Returns what [`as_read`] makes of a history, which is that of the last call at a later time.
    pub fn as_read(
        &mut self,
        stored: &History,
        current: Option<&MessageId>,
        waiting: &BTreeSet<MessageId>,
        own: &MessageId,
    ) -> History {
        self.look_at(stored);
        let left_out = waiting.iter().chain(current);
        let plain = if left_out.into_iter().all(|id| self.is_newer(id)) {
            self.plain_rest(stored, current, waiting, own)
        } else {
            None
        };
        let Some(rest) = plain else {
            return as_read(stored, current, waiting, own);
        };
        let mut history = stored.first(self.plain);
        for message in rest {
            history.push(message);
        }
        history.share(stored);
        history
    }

    /// Advances to where the history is not plain, or to the newest messages.
    fn look_at(&mut self, stored: &History) {
        if !stored.begins_like(&self.history, self.plain) {
            *self = Self::default();
        }
        if stored.len() > self.plain + MAX_NEWEST {
            let older = stored.len() - NEWEST;
            for message in stored.iter_from(self.plain).take(older - self.plain) {
                let mut asked = self.asked.clone();
                if !asked.is_plain(message) {
                    break;
                }
                self.asked = asked;
                self.plain += 1;
            }
        }
        self.history = stored.clone();
    }

    /// Returns whether a message comes after the known ones.
    fn is_newer(&self, id: &MessageId) -> bool {
        let last = self.plain.checked_sub(1);
        let last = last.and_then(|last| self.history.get(last)?.id());
        last.is_none_or(|last| last < id.as_str())
    }

    /// Returns the newest messages as a turn reads them, if they are few and plain.
    fn plain_rest(
        &self,
        stored: &History,
        current: Option<&MessageId>,
        waiting: &BTreeSet<MessageId>,
        own: &MessageId,
    ) -> Option<Vec<Arc<HistoryMessage>>> {
        if stored.len() > self.plain + MAX_NEWEST {
            return None;
        }
        let mut asked = self.asked.clone();
        let mut rest = Vec::with_capacity(stored.len() - self.plain);
        for message in stored.iter_from(self.plain) {
            let id = message.stored()?.info.id();
            if Some(id) == current || (id != own && waiting.contains(id)) {
                continue;
            }
            if !asked.is_plain(message) {
                return None;
            }
            rest.push(Arc::clone(message));
        }
        Some(rest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::*;

    fn message(n: usize, kind: u8) -> HistoryMessage {
        let id = |n: usize| format!("msg_{n:04}");
        let asked = |back: usize| id(n.saturating_sub(back));
        match kind {
            0..=3 => user(&id(n), "asked"),
            4..=7 => answered(&id(n), &asked(1), "said"),
            8 => answered(&id(n), &asked(2), "said"),
            9 => compaction(&id(n), Some(&asked(3))),
            _ => summary(&id(n), &asked(1), "sum"),
        }
        .into()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// Turns run while the history grows, is changed, and loses messages; some of them with queued prompts.
        #[test]
        fn what_is_kept_changes_nothing_of_what_is_read(
            edits in proptest::collection::vec((0_u8..24, 0_usize..1000, 0_u8..12, 1_usize..50, 0_usize..8), 1..30),
        ) {
            let mut grown = Grown::default();
            let mut history = History::default();
            let mut next = 0;
            for (edit, at, kind, count, back) in edits {
                let near = history.len().saturating_sub(1 + at % 6);
                match edit {
                    0 if !history.is_empty() => {
                        let at = at % history.len();
                        history.set(at, message(at, kind));
                    }
                    1 if !history.is_empty() => history = history.first(at % history.len()),
                    2 if !history.is_empty() => {
                        history.set(near, message(near, kind));
                    }
                    _ => {
                        for n in 0..count {
                            // Prompts and answers in turns, as in most histories.
                            let kind = if edit < 4 && n + 1 == count { kind } else if n % 2 == 0 { 0 } else { 4 };
                            history.push(Arc::new(message(next, kind)));
                            next += 1;
                        }
                    }
                }
                next = history.len();
                let id = |back: usize| {
                    let at = history.len().checked_sub(back + 1);
                    let id = at.and_then(|at| history.get(at)?.id());
                    MessageId(id.unwrap_or("msg_none").to_owned())
                };
                let current = (edit % 2 == 0).then(|| id(0));
                let waiting: BTreeSet<MessageId> = match edit % 3 {
                    0 => [id(back), id(back * at % 50)].into(),
                    _ => BTreeSet::new(),
                };
                let own = id(at % 3);
                let ids = |read: &History| -> Vec<String> {
                    read.iter().filter_map(|it| it.id().map(str::to_owned)).collect()
                };
                let read = grown.as_read(&history, current.as_ref(), &waiting, &own);
                let fresh = as_read(&history, current.as_ref(), &waiting, &own);
                prop_assert_eq!(ids(&read), ids(&fresh));
                prop_assert!(read == fresh);
            }
        }
    }

    #[test]
    fn only_the_newest_messages_are_looked_at_again() {
        let messages = (0..1000).map(|n| message(n, if n % 2 == 0 { 0 } else { 4 }));
        let mut history = History::of(messages.map(Arc::new).collect());
        let mut grown = Grown::default();
        for n in 1000..1200 {
            let own = MessageId(format!("msg_{n:04}"));
            history.push(Arc::new(message(n, 0)));
            let read = grown.as_read(&history, None, &BTreeSet::new(), &own);
            assert_eq!(read.len(), history.len());
            assert!(history.len() - grown.plain <= MAX_NEWEST);
            assert!(read.begins_like(&history, history.len()));
        }
    }
}
