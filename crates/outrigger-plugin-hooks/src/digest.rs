//! The hashes that the audit stores instead of contents (C13).

use outrigger_protocol::history::History;
use outrigger_protocol::turn::HookPayload;
use outrigger_stdx::text::hex;
use ring::digest::{Context, Digest, SHA256, digest};
use serde::Serialize;

/// Returns the hash of a value for the audit: SHA-256 of its JSON text, in hexadecimal digits.
#[must_use]
pub fn hash<T: Serialize + ?Sized>(value: &T) -> String {
    hex(json_digest(value).as_ref())
}

fn json_digest<T: Serialize + ?Sized>(value: &T) -> Digest {
    let mut sha = Hasher {
        context: Context::new(&SHA256),
        waiting: Vec::with_capacity(BLOCK),
    };
    // Serialising cannot fail here; for a value without JSON text the hash covers the part written so far.
    let _ = serde_json::to_writer(&mut sha, value);
    sha.finish()
}

/// Returns the hash of a handler's input. A conversation in it replaces its `messages` by a separate hash, most of which
/// is known from the previous call: see [`History::digest`].
#[must_use]
pub(crate) fn hash_items(items: &[HookPayload]) -> String {
    if items.iter().all(|item| item.history.is_none()) {
        return hash(items);
    }
    let of = |history: &History| {
        let digest = history.digest(
            |message| bytes(&json_digest(message)),
            |text| bytes(&digest(&SHA256, text)),
        );
        hex(&digest)
    };
    let items = items
        .iter()
        .map(|item| (&item.input, &item.output, item.history.as_ref().map(of)));
    hash(&items.collect::<Vec<_>>())
}

fn bytes(digest: &Digest) -> [u8; 32] {
    let mut bytes = [0; 32];
    // Both are as long as SHA-256 is.
    for (to, from) in bytes.iter_mut().zip(digest.as_ref()) {
        *to = *from;
    }
    bytes
}

/// Returns the hash of a handler's input after an answer before it was applied: computed from both hashes.
#[must_use]
pub(crate) fn hash_after(before: &str, answer: &str) -> String {
    hex(digest(&SHA256, format!("{before}{answer}").as_bytes()).as_ref())
}

/// Block size: a serialiser writes a few bytes at a time, and each update has a cost.
const BLOCK: usize = 4096;

// Hashes a long history as it is serialised, without a copy of its text.
struct Hasher {
    context: Context,
    waiting: Vec<u8>,
}

impl Hasher {
    fn finish(mut self) -> Digest {
        self.context.update(&self.waiting);
        self.context.finish()
    }
}

impl std::io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.waiting.len() + bytes.len() > BLOCK {
            self.context.update(&self.waiting);
            self.waiting.clear();
        }
        if bytes.len() > BLOCK {
            self.context.update(bytes);
        } else {
            self.waiting.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hashes_are_those_of_the_json_text() {
        // Computed independently with `printf '{"a":1}' | sha256sum`.
        assert_eq!(
            hash(&json!({"a": 1})),
            "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
        );
        // For texts of any length, wherever a block ends.
        for length in [0, 4090, 4095, 4096, 4097, 9000] {
            let value = json!({"a": "x".repeat(length), "b": ["y".repeat(length), 1]});
            let text = serde_json::to_string(&value).unwrap();
            assert_eq!(hash(&value), hex(digest(&SHA256, text.as_bytes()).as_ref()));
        }
        assert_eq!(
            hash_after("ab", "cd"),
            "88d4266fd4e6338d13b845fcf289579d209c897823b9217da3e161936f031589"
        );
    }

    #[test]
    fn the_hash_of_a_conversation_is_that_of_its_messages() {
        let of = |messages: &[&str], input: &str| {
            let history = messages.iter().map(|text| json!(text)).collect();
            hash_items(&[HookPayload::with_history(json!(input), history)])
        };
        assert_eq!(of(&["a", "b"], ""), of(&["a", "b"], ""));
        for (messages, input) in [
            (&["a"][..], ""),
            (&["b", "a"], ""),
            (&["a", "b", "c"], ""),
            (&["a", "b"], "x"),
        ] {
            assert_ne!(of(messages, input), of(&["a", "b"], ""), "{messages:?}");
        }
        let plain = [HookPayload::new(json!({}), json!({"messages": []}))];
        assert_eq!(hash_items(&plain), hash(&plain));
    }
}
