//! The messages of a request, which shares long parts of a conversation as blocks.

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{ChatMessage, Role, SharedMessage};

/// The messages of a request, in order. Requests of one conversation share most of their messages in blocks, so the cost of a
/// request depends on what is new, not on its length.
#[derive(Clone, Debug, Default)]
pub struct Messages(Vec<Stretch>);

/// Consecutive messages of a request.
#[derive(Clone, Debug)]
pub enum Stretch {
    /// One message.
    One(SharedMessage),
    /// Messages shared as a whole; none is a system message.
    Block(Arc<Block>),
}

/// Immutable messages. Their serialized form is cached, as for a single message.
pub struct Block {
    messages: Box<[SharedMessage]>,
    written: Mutex<Written>,
}

/// The cached text of a block.
#[derive(Default)]
enum Written {
    #[default]
    Nothing,
    /// It was requested in this form once: nothing is cached for a block that is in only one request.
    Once(u64),
    Text {
        form: u64,
        text: Arc<str>,
        end: Option<Role>,
    },
}

impl Block {
    /// Returns what `write` produces for the messages, with the role of the last one; `None` on the first request for a block, whose
    /// messages must then be written one by one. `form` identifies everything else that the text depends on.
    pub fn written(
        &self,
        form: u64,
        write: impl FnOnce(&[SharedMessage]) -> (String, Option<Role>),
    ) -> Option<(Arc<str>, Option<Role>)> {
        let written = self.written.lock();
        let mut written = written.unwrap_or_else(PoisonError::into_inner);
        match &*written {
            Written::Text {
                form: of,
                text,
                end,
            } if *of == form => return Some((Arc::clone(text), *end)),
            Written::Once(of) if *of == form => {}
            _ => {
                *written = Written::Once(form);
                return None;
            }
        }
        let (text, end) = write(&self.messages);
        let text: Arc<str> = text.into();
        for message in &self.messages {
            message.forget();
        }
        *written = Written::Text {
            form,
            text: Arc::clone(&text),
            end,
        };
        Some((text, end))
    }
}

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.messages).finish()
    }
}

impl From<Vec<SharedMessage>> for Block {
    fn from(messages: Vec<SharedMessage>) -> Self {
        Self {
            messages: messages.into_boxed_slice(),
            written: Mutex::default(),
        }
    }
}

impl Stretch {
    /// Returns its messages.
    #[must_use]
    pub fn messages(&self) -> &[SharedMessage] {
        match self {
            Self::One(message) => std::slice::from_ref(message),
            Self::Block(block) => &block.messages,
        }
    }
}

impl Messages {
    /// Returns the number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(|it| it.messages().len()).sum()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Iterates over all messages one by one.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &SharedMessage> {
        self.0.iter().flat_map(Stretch::messages)
    }

    /// Returns the first `len` messages, in blocks where these are included completely.
    pub fn stretches(&self, len: usize) -> impl Iterator<Item = Stretch> {
        let mut left = len;
        self.0.iter().flat_map(move |stretch| {
            let messages = stretch.messages();
            let taken = messages.len().min(left);
            left -= taken;
            let (whole, cut) = if taken == messages.len() {
                (Some(stretch.clone()), &[][..])
            } else {
                (None, messages.get(..taken).unwrap_or_default())
            };
            let cut = cut.iter().cloned().map(Stretch::One);
            whole.into_iter().chain(cut)
        })
    }

    /// Returns the texts of the system messages.
    pub fn system(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|stretch| match stretch {
            Stretch::One(message) => match &**message {
                ChatMessage::System { content } => Some(content.as_str()),
                _ => None,
            },
            Stretch::Block(_) => None,
        })
    }

    /// Removes the system messages.
    pub fn remove_system(&mut self) {
        let is_system = |message: &SharedMessage| matches!(**message, ChatMessage::System { .. });
        self.0.retain(|stretch| match stretch {
            Stretch::One(message) => !is_system(message),
            Stretch::Block(_) => true,
        });
    }

    /// Appends a message.
    pub fn push(&mut self, message: SharedMessage) {
        self.0.push(Stretch::One(message));
    }

    /// Appends a block, which must not contain system messages.
    pub fn push_block(&mut self, block: Arc<Block>) {
        self.0.push(Stretch::Block(block));
    }

    /// Appends all messages of another list.
    pub fn append(&mut self, mut others: Self) {
        self.0.append(&mut others.0);
    }
}

impl FromIterator<SharedMessage> for Messages {
    fn from_iter<I: IntoIterator<Item = SharedMessage>>(messages: I) -> Self {
        Self(messages.into_iter().map(Stretch::One).collect())
    }
}

impl<const N: usize> From<[ChatMessage; N]> for Messages {
    fn from(messages: [ChatMessage; N]) -> Self {
        messages.into_iter().map(SharedMessage::from).collect()
    }
}

impl From<Vec<ChatMessage>> for Messages {
    fn from(messages: Vec<ChatMessage>) -> Self {
        messages.into_iter().map(SharedMessage::from).collect()
    }
}

impl PartialEq for Messages {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Serialize for Messages {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Messages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<SharedMessage>::deserialize(deserializer).map(Self::from_iter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> SharedMessage {
        let content = vec![super::super::Content::Text { text: text.into() }];
        ChatMessage::User { content }.into()
    }

    fn system() -> SharedMessage {
        let content = "S".to_owned();
        ChatMessage::System { content }.into()
    }

    #[test]
    fn blocks_read_like_single_messages() {
        let mut messages = Messages::from_iter([system()]);
        messages.push_block(Arc::new(vec![said("a"), said("b"), said("c")].into()));
        messages.push(said("d"));
        let single: Messages = ["a", "b", "c", "d"].map(said).into_iter().collect();
        assert_eq!(messages.len(), 5);
        assert_eq!(messages.system().collect::<Vec<_>>(), ["S"]);
        let mut without = messages.clone();
        without.remove_system();
        assert_eq!(without, single);
        let text = serde_json::to_string(&without).unwrap();
        assert_eq!(text, serde_json::to_string(&single).unwrap());
        assert_eq!(serde_json::from_str::<Messages>(&text).unwrap(), without);
        let blocks = |len: usize| {
            let stretches = messages.stretches(len);
            stretches.map(|it| it.messages().len()).collect::<Vec<_>>()
        };
        assert_eq!(blocks(5), [1, 3, 1]);
        assert_eq!(blocks(4), [1, 3]);
        assert_eq!(blocks(3), [1, 1, 1]);
        assert_eq!(blocks(0), [0; 0]);
    }

    #[test]
    fn a_block_keeps_its_text_from_the_second_time_on() {
        let block = Block::from(vec![said("a"), said("b")]);
        let writes = std::cell::Cell::new(0);
        let text = |form| {
            let written = block.written(form, |messages| {
                writes.set(writes.get() + 1);
                (format!("{} of {form}", messages.len()), Some(Role::User))
            });
            written.map(|(text, end)| {
                assert_eq!(end, Some(Role::User));
                text.to_string()
            })
        };
        let texts = [1, 1, 1, 2, 2, 2].map(text);
        let (one, two) = (Some("2 of 1".to_owned()), Some("2 of 2".to_owned()));
        assert_eq!(texts, [None, one.clone(), one, None, two.clone(), two]);
        assert_eq!(writes.get(), 2);
    }
}
