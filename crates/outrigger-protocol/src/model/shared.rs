//! Messages to a model that a session's history shares with its requests.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ChatMessage;

/// An immutable message. Its serialized form is cached, so the cost of a request depends on what is new, not on its length.
#[derive(Clone)]
pub struct SharedMessage(Arc<CachedMessage>);

struct CachedMessage {
    message: ChatMessage,
    /// The last serialized form, and the text.
    written: Mutex<Option<(u64, Box<str>)>>,
}

impl SharedMessage {
    /// Calls `read` with what `write` produces for the message. The text is cached until another form is requested: `form`
    /// identifies everything else that it depends on.
    pub fn written<T>(
        &self,
        form: u64,
        write: impl FnOnce(&ChatMessage) -> String,
        read: impl FnOnce(&str) -> T,
    ) -> T {
        let written = self.0.written.lock();
        let mut written = written.unwrap_or_else(PoisonError::into_inner);
        let kept = match written.take() {
            Some((of, text)) if of == form => (of, text),
            _ => (form, write(&self.0.message).into_boxed_str()),
        };
        let (_, text) = written.insert(kept);
        read(text)
    }

    /// Drops the cached text: it is part of a longer one.
    pub(super) fn forget(&self) {
        let written = self.0.written.lock();
        *written.unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Deref for SharedMessage {
    type Target = ChatMessage;

    fn deref(&self) -> &ChatMessage {
        &self.0.message
    }
}

impl From<ChatMessage> for SharedMessage {
    fn from(message: ChatMessage) -> Self {
        Self(Arc::new(CachedMessage {
            message,
            written: Mutex::default(),
        }))
    }
}

impl std::fmt::Debug for SharedMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.message.fmt(f)
    }
}

impl PartialEq for SharedMessage {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.message == other.0.message
    }
}

impl Serialize for SharedMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.message.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SharedMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ChatMessage::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_written_once_for_a_form() {
        let message = ChatMessage::System {
            content: "S".into(),
        };
        let message = SharedMessage::from(message);
        let copy = message.clone();
        let writes = std::cell::Cell::new(0);
        let write = |_: &ChatMessage| {
            writes.set(writes.get() + 1);
            format!("text {}", writes.get())
        };
        let texts = [(&message, 1), (&copy, 1), (&copy, 2), (&message, 2)]
            .map(|(message, form)| message.written(form, write, str::to_owned));
        assert_eq!(texts, ["text 1", "text 1", "text 2", "text 2"]);
        assert_eq!(message, copy);
    }
}
