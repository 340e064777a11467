//! Keys, and their removal from everything that is shown or stored.

use std::fmt;

pub(crate) use outrigger_protocol::keys::is_secret_name;
use outrigger_protocol::keys::{KEY_PREFIXES, is_no_key, looks_like_key};

/// Replacement of a key.
pub(crate) const REMOVED: &str = "[key removed]";

/// A key. Its `Debug` shows nothing of it, and it has no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
    /// Returns the key itself, only for a request header.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REMOVED)
    }
}

/// Secrets of one provider.
#[derive(Clone, Debug, Default)]
pub(crate) struct Secrets(Vec<Secret>);

impl Secrets {
    pub(crate) fn add(&mut self, secret: &Secret) {
        // Very short "keys" (local servers are configured with `x` or `none`) are not secret, and removing them would
        // make every message unreadable.
        let is_key = secret.expose().len() >= 6 && !is_no_key(secret.expose());
        if is_key && !self.0.contains(secret) {
            self.0.push(secret.clone());
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes the keys, and words that look like one.
    pub(crate) fn scrub(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for secret in &self.0 {
            if out.contains(secret.expose()) {
                out = out.replace(secret.expose(), REMOVED);
            }
        }
        // Providers echo parts of a key in their messages.
        if KEY_PREFIXES.iter().any(|p| out.contains(p)) {
            out = scrub_words(&out);
        }
        out
    }

    /// Removes only exact keys; for recordings, whose text must not change otherwise.
    pub(crate) fn scrub_exact(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |out, secret| {
            out.replace(secret.expose(), REMOVED)
        })
    }
}

fn scrub_words(text: &str) -> String {
    let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '*' | '.');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let word = rest.find(|c| !is_key(c)).unwrap_or(rest.len());
        let (head, tail) = rest.split_at(word);
        out.push_str(if looks_like_key(head) { REMOVED } else { head });
        let other = tail.find(is_key).unwrap_or(tail.len());
        let (gap, next) = tail.split_at(other);
        out.push_str(gap);
        rest = next;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_words_like_keys_are_removed() {
        let mut secrets = Secrets::default();
        secrets.add(&Secret::new("hunter2hunter2"));
        secrets.add(&Secret::new("x"));
        for (text, want) in [
            ("bad key hunter2hunter2!", "bad key [key removed]!"),
            (
                "Incorrect API key provided: sk-abcd****wxyz.",
                "Incorrect API key provided: [key removed]",
            ),
            ("task-force and sk-8 stay", "task-force and sk-8 stay"),
            ("x stays", "x stays"),
        ] {
            assert_eq!(secrets.scrub(text), want);
        }
        assert_eq!(format!("{secrets:?}"), "Secrets([[key removed]])");
    }
}
