//! The hashes that the audit keeps instead of contents (C13).

use ring::digest::{Context, Digest, SHA256, digest};
use serde::Serialize;

/// The hash that the audit keeps instead of a value: SHA-256 of its JSON text, in hexadecimal digits.
#[must_use]
pub fn hash<T: Serialize + ?Sized>(value: &T) -> String {
    let mut sha = Hasher {
        context: Context::new(&SHA256),
        waiting: Vec::with_capacity(BLOCK),
    };
    // Nothing here fails to write; a value that has no JSON text has the hash of what there is of it.
    let _ = serde_json::to_writer(&mut sha, value);
    hex(sha.finish().as_ref())
}

/// The hash of what a handler is given when an answer before it was taken: of both hashes.
#[must_use]
pub(crate) fn hash_after(before: &str, answer: &str) -> String {
    hex(digest(&SHA256, format!("{before}{answer}").as_bytes()).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A serialiser writes a few bytes at a time, and each update has a price: so much is gathered first.
const BLOCK: usize = 4096;

// A long history is hashed as it is written, without a copy of its text.
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
        // Worked out independently with `printf '{"a":1}' | sha256sum`.
        assert_eq!(
            hash(&json!({"a": 1})),
            "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
        );
        // However long its texts are, and wherever a block ends.
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
}
