//! The host's side of the message mirror: the messages of sessions that a process has, so that a call carries only the
//! changes since the last one.
//!
//! The process keeps the list of the last call of a session, by its revision. It may drop it at any time and then
//! reports that (`NEED_WHOLE`); a restarted process has nothing. So correctness does not depend on this state: only a
//! revision that the process has is ever referenced.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use outrigger_protocol::history::{History, HistoryMessage};
use outrigger_stdx::sync::lock;

use crate::error::JsError;

/// Maximum number of sessions that are kept for one process. (The process keeps 16 of any size, and requests what it
/// needs.)
const MAX_SESSIONS: usize = 32;
/// Maximum bytes of their messages as JSON, the same as in the process.
const MAX_BYTES: u64 = 128 << 20;

/// The lists that a process keeps.
#[derive(Debug, Default)]
pub(crate) struct Mirrors(Mutex<Vec<Entry>>);

#[derive(Debug)]
struct Entry {
    session: String,
    bytes: u64,
    kept: Arc<tokio::sync::Mutex<MirroredHistory>>,
}

impl Mirrors {
    /// Returns the messages of a session and marks it as the most recently used.
    pub(crate) fn session(&self, session: &str) -> Arc<tokio::sync::Mutex<MirroredHistory>> {
        let mut entries = lock(&self.0);
        let at = entries.iter().position(|entry| entry.session == session);
        let entry = match at {
            Some(at) => entries.remove(at),
            None => Entry {
                session: session.to_owned(),
                bytes: 0,
                kept: Arc::default(),
            },
        };
        let kept = Arc::clone(&entry.kept);
        entries.push(entry);
        kept
    }

    /// Sets the size of a session; drops the least recently used ones while the limit is exceeded.
    pub(crate) fn bound(&self, session: &str, bytes: u64) {
        let mut entries = lock(&self.0);
        for entry in entries.iter_mut() {
            if entry.session == session {
                entry.bytes = bytes;
            }
        }
        let mut total: u64 = entries.iter().map(|entry| entry.bytes).sum();
        let mut over = entries.len().saturating_sub(MAX_SESSIONS);
        entries.retain(|entry| {
            let drop = entry.session != session && (over > 0 || total > MAX_BYTES);
            if drop {
                over = over.saturating_sub(1);
                total -= entry.bytes;
            }
            !drop
        });
    }
}

/// The messages of one session as the process has them.
#[derive(Debug, Default)]
pub(crate) struct MirroredHistory {
    revision: u64,
    /// False if the whole list must be sent.
    known: bool,
    messages: History,
}

impl MirroredHistory {
    /// Returns the revision that the next call may refer to.
    pub(crate) fn base(&self) -> Option<u64> {
        self.known.then_some(self.revision)
    }

    /// Returns the revision of the next call's list.
    pub(crate) fn next(&self) -> u64 {
        self.revision + 1
    }

    /// Records that the process no longer has it.
    pub(crate) fn forget(&mut self) {
        self.known = false;
        self.messages = History::default();
    }

    /// Returns what the process must be sent to have `messages`: a list of [`outrigger_protocol::transfer::Piece`] as
    /// JSON.
    ///
    /// Blocks that both lists share are skipped as a whole, so the cost is that of the new messages.
    pub(crate) fn delta(&self, messages: &History) -> Result<Vec<u8>, JsError> {
        let mut pieces = Pieces::new();
        let mut ids: Option<HashMap<&str, usize>> = None;
        // The first position of the kept list after those that were used: no position is used twice.
        let (mut at, mut due) = (0, 0);
        while let Some(message) = messages.get(at) {
            let shared = messages.shared_from(&self.messages, at);
            if shared > 0 && due <= at {
                pieces.kept(at, shared);
                at += shared;
                due = at;
                continue;
            }
            let is = |index: usize| {
                let kept = self.messages.get(index);
                Some((index, kept.filter(|kept| kept.is_same(message))?))
            };
            let moved = || {
                // Only later messages can match: after the end there is nothing to look for.
                let ids = ids.get_or_insert_with(|| index(&self.messages, due + 1));
                let found = ids.get(message.id()?).copied();
                found.filter(|found| *found > due).and_then(is)
            };
            match is(due).or_else(moved) {
                Some((index, kept)) => {
                    message.learn(kept);
                    pieces.kept(index, 1);
                    due = index + 1;
                }
                None => {
                    pieces.new_one(message)?;
                    due += 1;
                }
            }
            at += 1;
        }
        Ok(pieces.end())
    }

    /// Records that the process has been sent the list.
    pub(crate) fn take(&mut self, messages: &History) {
        self.messages = messages.clone();
        self.revision += 1;
        self.known = true;
    }
}

/// Returns the positions of messages by id, from a given one on.
fn index(messages: &History, from: usize) -> HashMap<&str, usize> {
    (from..messages.len())
        .filter_map(|index| Some((messages.get(index)?.id()?, index)))
        .collect()
}

/// A list of pieces under construction.
struct Pieces {
    text: Vec<u8>,
    /// Consecutive messages that the process has.
    run: Option<(usize, usize)>,
}

impl Pieces {
    fn new() -> Self {
        Self {
            text: b"[".to_vec(),
            run: None,
        }
    }

    fn kept(&mut self, from: usize, count: usize) {
        match &mut self.run {
            Some((first, so_far)) if *first + *so_far == from => *so_far += count,
            _ => {
                self.flush();
                self.run = Some((from, count));
            }
        }
    }

    fn new_one(&mut self, message: &HistoryMessage) -> Result<(), JsError> {
        self.flush();
        self.comma();
        self.text.extend_from_slice(b"{\"value\":");
        let before = self.text.len();
        serde_json::to_writer(&mut self.text, message).map_err(|error| JsError::BadFrame {
            reason: error.to_string(),
        })?;
        message.has_size((self.text.len() - before) as u64);
        self.text.push(b'}');
        Ok(())
    }

    fn end(mut self) -> Vec<u8> {
        self.flush();
        self.text.push(b']');
        self.text
    }

    fn flush(&mut self) {
        if let Some((from, count)) = self.run.take() {
            self.comma();
            self.text
                .extend_from_slice(format!("[{from},{count}]").as_bytes());
        }
    }

    fn comma(&mut self) {
        if self.text.len() > 1 {
            self.text.push(b',');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn message(id: usize) -> Value {
        json!({"info": {"id": format!("msg_{id:06}")}, "parts": [{"text": "x".repeat(500)}]})
    }

    fn sent(kept: &mut MirroredHistory, messages: &[Value]) -> String {
        let history = messages.iter().cloned().collect();
        let text = sent_shared(kept, &history);
        assert_eq!(json!(kept.messages), json!(messages));
        text
    }

    fn sent_shared(kept: &mut MirroredHistory, history: &History) -> String {
        let text = String::from_utf8(kept.delta(history).unwrap()).unwrap();
        for message in history.iter() {
            assert_eq!(message.size(), message.to_value().to_string().len() as u64);
        }
        kept.take(history);
        text
    }

    #[test]
    fn only_what_the_process_does_not_have_is_sent() {
        let mut kept = MirroredHistory::default();
        assert_eq!(
            sent(&mut kept, &[json!(1), json!(2)]),
            r#"[{"value":1},{"value":2}]"#
        );
        assert_eq!((kept.base(), kept.next()), (Some(1), 2));
        assert_eq!(
            sent(&mut kept, &[json!(1), json!(2), json!(3)]),
            r#"[[0,2],{"value":3}]"#
        );
        assert_eq!(
            sent(&mut kept, &[json!(1), json!(9), json!(3)]),
            r#"[[0,1],{"value":9},[2,1]]"#
        );
        assert_eq!(sent(&mut kept, &[]), "[]");

        let list: Vec<Value> = (0..5).map(message).collect();
        sent(&mut kept, &list);
        let mut less = list.clone();
        less.remove(1);
        assert_eq!(sent(&mut kept, &less), "[[0,1],[2,3]]");
        // A message that is in there twice is kept once.
        let twice = [less[0].clone(), less[0].clone()];
        let text = sent(&mut kept, &twice);
        assert!(text.starts_with(r#"[[0,1],{"value":"#), "{text}");

        for (before, after) in [
            (json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1})),
            (json!(0.0), json!(-0.0)),
            (json!([1]), json!([1, 1])),
            (json!({"a": null}), json!({})),
            (json!(1), json!(1.0)),
        ] {
            sent(&mut kept, std::slice::from_ref(&before));
            assert_eq!(
                sent(&mut kept, std::slice::from_ref(&after)),
                format!(r#"[{{"value":{after}}}]"#)
            );
        }
        kept.forget();
        assert_eq!((kept.base(), kept.messages.len()), (None, 0));
    }

    #[test]
    fn what_is_sent_does_not_grow_with_the_history() {
        let sent = |count: usize| {
            let mut kept = MirroredHistory::default();
            let mut messages: Vec<Value> = (0..count).map(message).collect();
            sent(&mut kept, &messages);
            messages.push(message(count));
            sent(&mut kept, &messages).len()
        };
        let (few, many) = (sent(10), sent(10_000));
        assert!(many * 2 <= few * 3, "{few} bytes, then {many}");
    }

    #[test]
    fn sessions_not_used_for_the_longest_time_are_dropped() {
        let mirrors = Mirrors::default();
        let names = || {
            let entries = mirrors.0.lock().unwrap();
            let names: Vec<String> = entries.iter().map(|entry| entry.session.clone()).collect();
            names.join(" ")
        };
        for session in ["a", "b", "c", "a"] {
            mirrors.session(session);
            mirrors.bound(session, MAX_BYTES / 3);
        }
        assert_eq!(names(), "b c a");
        mirrors.session("d");
        mirrors.bound("d", MAX_BYTES / 2);
        assert_eq!(names(), "a d");
        for index in 0..100 {
            mirrors.session(&index.to_string());
            mirrors.bound(&index.to_string(), 1);
        }
        assert_eq!(mirrors.0.lock().unwrap().len(), MAX_SESSIONS);
    }
}
