//! A value as a record keeps it: without secrets, and whole where it is small.

use outrigger_protocol::hook::RecordedValue;
use outrigger_protocol::text::floor;
use serde_json::Value;

use super::RedactFn;
use crate::digest::hash;

/// Bytes of a value that is kept as it is, and of the part that is kept of a larger one.
const MAX_VALUE: usize = 2048;
/// Bytes of all values of an answer. After that their hashes are kept.
const MAX_VALUES: usize = 32 * 1024;
/// Bytes of a value in which secrets are looked for. Of a larger one its hash is kept.
const MAX_SEARCHED: usize = 128 * 1024;
/// Bytes of a text that are kept around what differs.
const CONTEXT: usize = 200;

/// How much may still be kept.
pub(super) struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(MAX_VALUES)
    }
}

/// A value without secrets.
struct Searched<'a> {
    original: &'a Value,
    value: Value,
    /// Of a text the text, of anything else its JSON text.
    text: String,
}

impl Room {
    /// Both sides of a difference.
    pub(super) fn take(
        &mut self,
        at: &str,
        before: Option<&Value>,
        after: Option<&Value>,
        redact: &RedactFn,
    ) -> (Option<RecordedValue>, Option<RecordedValue>) {
        let name = name_of(at);
        let search = |value| Searched::new(name, value, redact);
        match (before, after) {
            (Some(before), Some(after)) => {
                let (old, new) = (search(before), search(after));
                let text = |of: &Option<Searched<'_>>| of.as_ref().map(|it| it.text.clone());
                let (a, b) = (
                    text(&old).unwrap_or_default(),
                    text(&new).unwrap_or_default(),
                );
                let (begin, end) = common(&a, &b);
                let old = self.one(before, old, (begin, end));
                (Some(old), Some(self.one(after, new, (begin, end))))
            }
            (before, after) => {
                let mut one = |value| self.one(value, search(value), (0, 0));
                (before.map(&mut one), after.map(&mut one))
            }
        }
    }

    /// `common` is how many bytes it begins and ends with that the other side has, too.
    fn one(
        &mut self,
        value: &Value,
        searched: Option<Searched<'_>>,
        common: (usize, usize),
    ) -> RecordedValue {
        let kept = searched.map(|it| it.recorded(common));
        let size = |of: &RecordedValue| match of {
            RecordedValue::Whole { value } => json_bytes(value),
            RecordedValue::Excerpt { text, .. } => text.len(),
            RecordedValue::Digest { .. } => 0,
        };
        match kept.map(|it| (size(&it), it)) {
            Some((size, kept)) if size <= self.0 => {
                self.0 -= size;
                kept
            }
            _ => RecordedValue::Digest {
                bytes: json_bytes(value) as u64,
                sha256: hash(value),
            },
        }
    }
}

impl<'a> Searched<'a> {
    /// None of a value that is too large for that.
    fn new(name: &str, original: &'a Value, redact: &RedactFn) -> Option<Self> {
        if json_bytes(original) > MAX_SEARCHED {
            return None;
        }
        let mut value = original.clone();
        redact(name, &mut value);
        let text = match &value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Some(Self {
            original,
            value,
            text,
        })
    }

    fn recorded(self, (begin, end): (usize, usize)) -> RecordedValue {
        if self.text.len() <= MAX_VALUE {
            return RecordedValue::Whole { value: self.value };
        }
        let from = floor(&self.text, begin.saturating_sub(CONTEXT));
        let until = (self.text.len() - end).saturating_add(CONTEXT);
        let until = until.min(from + MAX_VALUE).min(self.text.len());
        let until = floor(&self.text, until);
        RecordedValue::Excerpt {
            text: self.text.get(from..until).unwrap_or_default().to_owned(),
            from: from as u64,
            bytes: self.text.len() as u64,
            sha256: hash(self.original),
        }
    }
}

/// How many bytes two texts begin and end with alike.
fn common(a: &str, b: &str) -> (usize, usize) {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let same = |(a, b): &(&u8, &u8)| a == b;
    let begin = a.iter().zip(b).take_while(same).count();
    let left = a.len().min(b.len()) - begin;
    let end = a.iter().rev().zip(b.iter().rev());
    (begin, end.take(left).take_while(same).count())
}

/// The name that a place has: the last step of its pointer that is not an index.
fn name_of(at: &str) -> &str {
    let is_name = |step: &&str| !step.bytes().all(|byte| byte.is_ascii_digit());
    at.rsplit('/').find(is_name).unwrap_or_default()
}

fn json_bytes(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Nothing here fails to write.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}
