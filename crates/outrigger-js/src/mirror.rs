//! The host's side of the message mirror: what a process has of the messages of sessions, so that a call carries only
//! what changed since the last one.
//!
//! The process keeps the list of the last call of a session, by its revision. It may drop it at any time and then says
//! so (`NEED_WHOLE`); a process that was started again has nothing. So nothing here has to be right for the result to
//! be right: only a revision that the process has is ever counted in.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};

use crate::error::JsError;

/// Most sessions that are kept for one process. (The process keeps 16 of any size, and says what it needs.)
const MOST_SESSIONS: usize = 32;
/// Most bytes of their messages as JSON. The process keeps as many.
const MOST_BYTES: u64 = 128 << 20;

/// What a process keeps.
#[derive(Debug, Default)]
pub(crate) struct Mirrors(Mutex<Vec<Entry>>);

#[derive(Debug)]
struct Entry {
    session: String,
    bytes: u64,
    kept: Arc<tokio::sync::Mutex<Kept>>,
}

impl Mirrors {
    /// The messages of a session, which counts as the one used last from now on.
    pub(crate) fn session(&self, session: &str) -> Arc<tokio::sync::Mutex<Kept>> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// The session has so many bytes now; those not used for the longest time are dropped while there are too many.
    pub(crate) fn bound(&self, session: &str, bytes: u64) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in entries.iter_mut() {
            if entry.session == session {
                entry.bytes = bytes;
            }
        }
        let mut total: u64 = entries.iter().map(|entry| entry.bytes).sum();
        let mut over = entries.len().saturating_sub(MOST_SESSIONS);
        entries.retain(|entry| {
            let drop = entry.session != session && (over > 0 || total > MOST_BYTES);
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
pub(crate) struct Kept {
    revision: u64,
    /// False when the list must be given whole.
    known: bool,
    messages: Vec<Value>,
    sizes: Vec<u64>,
}

/// What turns the kept list into another one.
#[derive(Debug)]
pub(crate) struct Delta {
    /// A list of [`outrigger_protocol::transfer::Piece`] as JSON.
    pub(crate) pieces: Vec<u8>,
    /// The size of each message as JSON, in bytes.
    pub(crate) sizes: Vec<u64>,
    /// For each message its place in the kept list, when it is there just the same.
    pub(crate) origins: Vec<Option<usize>>,
}

impl Kept {
    /// The revision that the next call may count in.
    pub(crate) fn base(&self) -> Option<u64> {
        self.known.then_some(self.revision)
    }

    /// The revision of the next call's list.
    pub(crate) fn next(&self) -> u64 {
        self.revision + 1
    }

    /// The process does not have it any more.
    pub(crate) fn forget(&mut self) {
        self.known = false;
        self.messages = Vec::new();
        self.sizes = Vec::new();
    }

    /// What the process has to be told for it to have `messages`.
    pub(crate) fn delta(&self, messages: &[Value]) -> Result<Delta, JsError> {
        let mut pieces = b"[".to_vec();
        let mut sizes = Vec::with_capacity(messages.len());
        let mut run: Option<(usize, usize)> = None;
        let origins = self.origins(messages);
        for (message, origin) in messages.iter().zip(&origins) {
            let origin = *origin;
            match (origin, &mut run) {
                (Some(index), Some((from, count))) if *from + *count == index => *count += 1,
                (Some(index), _) => {
                    flush(&mut pieces, run.take());
                    run = Some((index, 1));
                }
                (None, _) => flush(&mut pieces, run.take()),
            }
            let size = match origin.and_then(|index| self.sizes.get(index)) {
                Some(size) => *size,
                None => write(&mut pieces, message)?,
            };
            sizes.push(size);
        }
        flush(&mut pieces, run);
        pieces.push(b']');
        Ok(Delta {
            pieces,
            sizes,
            origins,
        })
    }

    /// For each message its place in the kept list, when it is there just the same; no place twice.
    fn origins(&self, messages: &[Value]) -> Vec<Option<usize>> {
        let mut ids: Option<HashMap<&str, usize>> = None;
        let mut due = 0;
        let origin = |message: &Value| {
            let is = |index: usize| {
                let kept = self.messages.get(index);
                kept.is_some_and(|kept| same(kept, message))
                    .then_some(index)
            };
            let moved = || {
                let ids = ids.get_or_insert_with(|| index(&self.messages));
                // Behind what was taken already, so that none is taken twice.
                let found = ids.get(id(message)?).copied();
                found.filter(|found| *found > due).and_then(is)
            };
            let found = is(due).or_else(moved);
            due = found.unwrap_or(due) + 1;
            found
        };
        messages.iter().map(origin).collect()
    }

    /// The process has been sent the list.
    pub(crate) fn take(&mut self, messages: &[Value], sizes: Vec<u64>, origins: &[Option<usize>]) {
        let mut old = std::mem::take(&mut self.messages);
        let moved = messages.iter().zip(origins).map(|(message, origin)| {
            let kept = origin.and_then(|index| old.get_mut(index));
            kept.map_or_else(|| message.clone(), Value::take)
        });
        self.messages = moved.collect();
        self.sizes = sizes;
        self.revision += 1;
        self.known = true;
    }
}

fn index(messages: &[Value]) -> HashMap<&str, usize> {
    let ids = messages.iter().enumerate();
    ids.filter_map(|(index, message)| Some((id(message)?, index)))
        .collect()
}

fn id(message: &Value) -> Option<&str> {
    message.get("info")?.get("id")?.as_str()
}

fn flush(pieces: &mut Vec<u8>, run: Option<(usize, usize)>) {
    if let Some((from, count)) = run {
        comma(pieces);
        pieces.extend_from_slice(format!("[{from},{count}]").as_bytes());
    }
}

fn comma(pieces: &mut Vec<u8>) {
    if pieces.len() > 1 {
        pieces.push(b',');
    }
}

fn write(pieces: &mut Vec<u8>, message: &Value) -> Result<u64, JsError> {
    comma(pieces);
    pieces.extend_from_slice(b"{\"value\":");
    let before = pieces.len();
    serde_json::to_writer(&mut *pieces, message).map_err(|error| JsError::BadFrame {
        reason: error.to_string(),
    })?;
    let size = pieces.len() - before;
    pieces.push(b'}');
    Ok(size as u64)
}

/// Whether two values have the same JSON text. (Objects with the keys in another order have not: plugins see the order.)
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => same_object(a, b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        // -0 is not 0.
        (Value::Number(a), Value::Number(b)) if a.is_f64() && b.is_f64() => {
            a.as_f64().map(f64::to_bits) == b.as_f64().map(f64::to_bits)
        }
        (a, b) => a == b,
    }
}

fn same_object(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|((a_key, a), (b_key, b))| a_key == b_key && same(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(id: usize) -> Value {
        json!({"info": {"id": format!("msg_{id:06}")}, "parts": [{"text": "x".repeat(500)}]})
    }

    fn told(kept: &mut Kept, messages: &[Value]) -> String {
        let delta = kept.delta(messages).unwrap();
        let text = String::from_utf8(delta.pieces).unwrap();
        let sizes: Vec<u64> = messages
            .iter()
            .map(|message| message.to_string().len() as u64)
            .collect();
        assert_eq!(delta.sizes, sizes);
        kept.take(messages, delta.sizes, &delta.origins);
        assert_eq!(kept.messages, messages);
        text
    }

    #[test]
    fn only_what_the_process_does_not_have_is_told() {
        let mut kept = Kept::default();
        assert_eq!(
            told(&mut kept, &[json!(1), json!(2)]),
            r#"[{"value":1},{"value":2}]"#
        );
        assert_eq!((kept.base(), kept.next()), (Some(1), 2));
        assert_eq!(
            told(&mut kept, &[json!(1), json!(2), json!(3)]),
            r#"[[0,2],{"value":3}]"#
        );
        assert_eq!(
            told(&mut kept, &[json!(1), json!(9), json!(3)]),
            r#"[[0,1],{"value":9},[2,1]]"#
        );
        assert_eq!(told(&mut kept, &[]), "[]");

        let list: Vec<Value> = (0..5).map(message).collect();
        told(&mut kept, &list);
        let mut less = list.clone();
        less.remove(1);
        assert_eq!(told(&mut kept, &less), "[[0,1],[2,3]]");
        // One that stands there twice is kept once.
        let twice = [less[0].clone(), less[0].clone()];
        let text = told(&mut kept, &twice);
        assert!(text.starts_with(r#"[[0,1],{"value":"#), "{text}");

        for (before, after) in [
            (json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1})),
            (json!(0.0), json!(-0.0)),
            (json!([1]), json!([1, 1])),
            (json!({"a": null}), json!({})),
            (json!(1), json!(1.0)),
        ] {
            told(&mut kept, std::slice::from_ref(&before));
            assert_eq!(
                told(&mut kept, std::slice::from_ref(&after)),
                format!(r#"[{{"value":{after}}}]"#)
            );
        }
        kept.forget();
        assert_eq!((kept.base(), kept.messages.len()), (None, 0));
    }

    #[test]
    fn what_is_sent_does_not_grow_with_the_history() {
        let sent = |count: usize| {
            let mut kept = Kept::default();
            let mut messages: Vec<Value> = (0..count).map(message).collect();
            told(&mut kept, &messages);
            messages.push(message(count));
            told(&mut kept, &messages).len()
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
            mirrors.bound(session, MOST_BYTES / 3);
        }
        assert_eq!(names(), "b c a");
        mirrors.session("d");
        mirrors.bound("d", MOST_BYTES / 2);
        assert_eq!(names(), "a d");
        for index in 0..100 {
            mirrors.session(&index.to_string());
            mirrors.bound(&index.to_string(), 1);
        }
        assert_eq!(mirrors.0.lock().unwrap().len(), MOST_SESSIONS);
    }
}
