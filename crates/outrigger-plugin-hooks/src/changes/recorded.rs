//! A value as a record keeps it: without secrets, and whole where it is small.

use outrigger_protocol::hook::RecordedValue;
use outrigger_stdx::text::floor_char_boundary;
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
/// Bytes around a kept part in which secrets are looked for, up to the end of the word there.
const MARGIN: usize = 512;
/// Maximum length of that word, in bytes.
const MAX_WORD: usize = 8 * 1024;

/// The name of the place of a value, and what takes secrets out of it.
type Place<'a> = (&'a str, &'a RedactFn);

/// How much may still be kept.
pub(super) struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(MAX_VALUES)
    }
}

/// A value as it is compared: a long text as it stands, anything else without secrets.
enum Compared<'a> {
    Text(&'a str),
    CleanText(String),
    /// Not a text, and its JSON text.
    Clean(Value, String),
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
        let place = (name_of(at), redact);
        match (before, after) {
            (Some(before), Some(after)) => {
                let (old, new) = (Compared::of(before, place), Compared::of(after, place));
                let alike = match (&old, &new) {
                    (Some(old), Some(new)) => common(old.text(), new.text()),
                    _ => (0, 0),
                };
                let old = self.one(before, old, alike, place);
                (Some(old), Some(self.one(after, new, alike, place)))
            }
            (before, after) => {
                let mut one =
                    |value: &Value| self.one(value, Compared::of(value, place), (0, 0), place);
                (before.map(&mut one), after.map(&mut one))
            }
        }
    }

    /// `common` is how many bytes it begins and ends with that the other side has, too.
    fn one(
        &mut self,
        value: &Value,
        compared: Option<Compared<'_>>,
        common: (usize, usize),
        place: Place<'_>,
    ) -> RecordedValue {
        let kept = compared.map(|it| it.recorded(common, place));
        let size = |of: &RecordedValue| match of {
            RecordedValue::Whole {
                value: Value::String(text),
            } => text.len(),
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

impl<'a> Compared<'a> {
    /// None of a value that is too large for that.
    fn of(value: &'a Value, (name, redact): Place<'_>) -> Option<Self> {
        match value {
            Value::String(text) if text.len() > MAX_SEARCHED => return None,
            Value::String(text) if text.len() > MAX_VALUE => return Some(Self::Text(text)),
            other if json_bytes(other) > MAX_SEARCHED => return None,
            _ => {}
        }
        let mut value = value.clone();
        redact(name, &mut value);
        Some(match value {
            Value::String(text) => Self::CleanText(text),
            other => {
                let text = other.to_string();
                Self::Clean(other, text)
            }
        })
    }

    fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::CleanText(text) | Self::Clean(_, text) => text,
        }
    }

    fn recorded(self, (begin, end): (usize, usize), place: Place<'_>) -> RecordedValue {
        let is_small = self.text().len() <= MAX_VALUE;
        match self {
            Self::CleanText(text) if is_small => {
                let value = Value::String(text);
                return RecordedValue::Whole { value };
            }
            Self::Clean(value, _) if is_small => return RecordedValue::Whole { value },
            _ => {}
        }
        let text = self.text();
        let from = floor_char_boundary(text, begin.saturating_sub(CONTEXT));
        let until = (text.len() - end)
            .saturating_add(CONTEXT)
            .min(from + MAX_VALUE)
            .min(text.len());
        let until = floor_char_boundary(text, until);
        let shown = match &self {
            Self::Text(text) => without_secrets(text, (from, until), place),
            Self::CleanText(_) | Self::Clean(..) => {
                text.get(from..until).unwrap_or_default().to_owned()
            }
        };
        RecordedValue::Excerpt {
            text: shown,
            from: from as u64,
            bytes: text.len() as u64,
        }
    }
}

/// A part of a long text. Secrets are looked for in what stands around it as well, so that one which reaches into it, or is
/// named before it, is found whole.
fn without_secrets(text: &str, (from, until): (usize, usize), (name, redact): Place<'_>) -> String {
    let first = word_start(text, floor_char_boundary(text, from.saturating_sub(MARGIN)));
    let last = word_end(
        text,
        floor_char_boundary(text, (until + MARGIN).min(text.len())),
    );
    let mut around = Value::from(text.get(first..last).unwrap_or_default());
    redact(name, &mut around);
    let clean = around.as_str().unwrap_or_default();
    if clean.len() <= until - from {
        return clean.to_owned();
    }
    // Where a secret was taken out in front of it, the part is another one by as much.
    let start = floor_char_boundary(clean, (from - first).min(clean.len()));
    let end = floor_char_boundary(clean, (start + until - from).min(clean.len()));
    clean.get(start..end).unwrap_or_default().to_owned()
}

/// Where the word begins that stands at this place.
fn word_start(text: &str, at: usize) -> usize {
    let earliest = floor_char_boundary(text, at.saturating_sub(MAX_WORD));
    let before = text.get(earliest..at).unwrap_or_default();
    let word = before.rsplit(char::is_whitespace).next();
    at - word.unwrap_or_default().len()
}

/// Where the word ends that stands at this place.
fn word_end(text: &str, at: usize) -> usize {
    let latest = floor_char_boundary(text, (at + MAX_WORD).min(text.len()));
    let after = text.get(at..latest).unwrap_or_default();
    let word = after.split(char::is_whitespace).next();
    at + word.unwrap_or_default().len()
}

/// How many bytes two texts begin and end with alike.
fn common(a: &str, b: &str) -> (usize, usize) {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let chunks = a.chunks_exact(CHUNK).zip(b.chunks_exact(CHUNK));
    let alike = CHUNK * chunks.take_while(|(a, b)| a == b).count();
    let rest = a.iter().skip(alike).zip(b.iter().skip(alike));
    let begin = alike + rest.take_while(|(a, b)| a == b).count();
    // What is part of the beginning is none of the end.
    let left = a.len().min(b.len()) - begin;
    let tail = |of: &[u8]| of.len() - left;
    let (a, b) = (
        a.get(tail(a)..).unwrap_or_default(),
        b.get(tail(b)..).unwrap_or_default(),
    );
    let chunks = a.rchunks_exact(CHUNK).zip(b.rchunks_exact(CHUNK));
    let alike = CHUNK * chunks.take_while(|(a, b)| a == b).count();
    let rest = a.iter().rev().skip(alike).zip(b.iter().rev().skip(alike));
    (begin, alike + rest.take_while(|(a, b)| a == b).count())
}

/// Bytes that are compared at once.
const CHUNK: usize = 64;

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::common;

    proptest! {
        /// Byte by byte the answer is the same.
        #[test]
        fn what_is_alike_is_found_in_steps(a in "[ab]{0,3}(a{70}|b{64}){0,3}[ab]{0,9}", b in "[ab]{0,3}(a{70}|b{64}){0,3}[ab]{0,9}") {
            let begin = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
            let left = a.len().min(b.len()) - begin;
            let end = a.bytes().rev().zip(b.bytes().rev()).take(left).take_while(|(a, b)| a == b).count();
            prop_assert_eq!(common(&a, &b), (begin, end));
        }
    }
}
