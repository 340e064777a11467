//! A conversation as `experimental.chat.messages.transform` is shown it.
//!
//! A pass of that hook over a long conversation mostly changes nothing, and the next pass shows the same messages and one
//! more. So messages are shared between the agent, the chain and what a plugin process is known to have, and what is
//! worked out of one (its size, its hash) is kept with it. They lie in blocks of [`BLOCK`], which are shared too: a pass
//! costs the host what is new, not what is there (A14).

use std::sync::{Arc, OnceLock};

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::message::MessageWithParts;
use crate::transfer::Piece;

/// Messages in a block. Block `n` always holds the messages from `n * BLOCK` on, so the hash of a history depends on its
/// messages and on nothing else.
pub const BLOCK: usize = 64;

/// The field of a payload's output that a history stands for.
pub const MESSAGES: &str = "messages";

/// SHA-256.
pub type Digest = [u8; 32];

/// A message that is shared. What is kept with it never goes out of date: it does not change.
#[derive(Debug)]
pub struct HistoryMessage {
    content: Content,
    size: OnceLock<u64>,
    digest: OnceLock<Digest>,
}

#[derive(Clone, Debug)]
enum Content {
    /// As the store has it.
    Stored(Box<MessageWithParts>),
    /// As a plugin left it: it need not be a message at all.
    Left(Value),
}

impl HistoryMessage {
    fn of(content: Content) -> Self {
        Self {
            content,
            size: OnceLock::new(),
            digest: OnceLock::new(),
        }
    }

    /// The message as the store has it; none for one that a plugin has changed or made.
    #[must_use]
    pub fn stored(&self) -> Option<&MessageWithParts> {
        match &self.content {
            Content::Stored(message) => Some(message),
            Content::Left(_) => None,
        }
    }

    /// Its JSON form.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match &self.content {
            // A message always has a JSON form.
            Content::Stored(message) => serde_json::to_value(message).unwrap_or_default(),
            Content::Left(value) => value.clone(),
        }
    }

    /// Its id, where it has one.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        match &self.content {
            Content::Stored(message) => Some(message.info.id().as_str()),
            Content::Left(value) => value.get("info")?.get("id")?.as_str(),
        }
    }

    /// Its JSON text was written, and has so many bytes: then nobody has to count them.
    pub fn has_size(&self, bytes: u64) {
        let _ = self.size.set(bytes);
    }

    /// Bytes of its JSON text.
    #[must_use]
    pub fn size(&self) -> u64 {
        *self.size.get_or_init(|| json_size(self))
    }

    /// Whether two messages have the same JSON text. A message that a plugin left is none of the store's, whatever it says.
    #[must_use]
    pub fn is_same(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        Arc::ptr_eq(self, other)
            || match (&self.content, &other.content) {
                (Content::Stored(a), Content::Stored(b)) => a == b,
                (Content::Left(a), Content::Left(b)) => same_text(a, b),
                _ => false,
            }
    }

    /// Takes over what is known of one with the same text.
    pub fn learn(&self, same: &Self) {
        if let Some(size) = same.size.get() {
            let _ = self.size.set(*size);
        }
        if let Some(digest) = same.digest.get() {
            let _ = self.digest.set(*digest);
        }
    }

    fn into_value(self: Arc<Self>) -> Value {
        match Arc::try_unwrap(self) {
            Ok(Self {
                content: Content::Left(value),
                ..
            }) => value,
            Ok(other) => other.to_value(),
            Err(shared) => shared.to_value(),
        }
    }
}

impl From<MessageWithParts> for HistoryMessage {
    fn from(message: MessageWithParts) -> Self {
        Self::of(Content::Stored(Box::new(message)))
    }
}

impl From<Value> for HistoryMessage {
    fn from(value: Value) -> Self {
        Self::of(Content::Left(value))
    }
}

impl Serialize for HistoryMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.content {
            Content::Stored(message) => message.serialize(serializer),
            Content::Left(value) => value.serialize(serializer),
        }
    }
}

/// Messages in order. Cheap to clone and to extend.
#[derive(Clone, Debug, Default)]
pub struct History {
    blocks: Vec<Arc<Block>>,
    len: usize,
}

#[derive(Debug, Default)]
struct Block {
    messages: Vec<Arc<HistoryMessage>>,
    size: OnceLock<u64>,
    digest: OnceLock<Digest>,
}

impl History {
    /// How many messages it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A message.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Arc<HistoryMessage>> {
        self.blocks.get(index / BLOCK)?.messages.get(index % BLOCK)
    }

    /// All messages.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<HistoryMessage>> {
        self.blocks.iter().flat_map(|block| &block.messages)
    }

    /// One message more.
    pub fn push(&mut self, message: Arc<HistoryMessage>) {
        if self.len.is_multiple_of(BLOCK) {
            self.blocks.push(Arc::default());
        }
        if let Some(messages) = self.block_mut(self.len) {
            messages.push(message);
            self.len += 1;
        }
    }

    /// Puts another message in a place; false when there is no such place.
    pub fn set(&mut self, index: usize, message: HistoryMessage) -> bool {
        let place = self
            .block_mut(index)
            .and_then(|messages| messages.get_mut(index % BLOCK));
        let found = place.is_some();
        if let Some(place) = place {
            *place = Arc::new(message);
        }
        found
    }

    /// Changes the JSON form of a message; none when there is no such message.
    pub fn change<T>(&mut self, index: usize, change: impl FnOnce(&mut Value) -> T) -> Option<T> {
        let place = self.block_mut(index)?.get_mut(index % BLOCK)?;
        // What was changed before in the same answer is nobody else's, so this copies a message once.
        let nothing = Arc::new(HistoryMessage::from(Value::Null));
        let mut value = std::mem::replace(place, nothing).into_value();
        let told = change(&mut value);
        *place = Arc::new(HistoryMessage::from(value));
        Some(told)
    }

    // The messages of the block of an index, for changing: what is known of the block holds no longer.
    fn block_mut(&mut self, index: usize) -> Option<&mut Vec<Arc<HistoryMessage>>> {
        let block = self.blocks.get_mut(index / BLOCK)?;
        if Arc::get_mut(block).is_none() {
            *block = Arc::new(Block {
                messages: block.messages.clone(),
                ..Block::default()
            });
        }
        let own = Arc::get_mut(block)?;
        own.size = OnceLock::new();
        own.digest = OnceLock::new();
        Some(&mut own.messages)
    }

    /// The list that is told by this one; none when that names messages that there are not. Each may be in it once, so
    /// it is never much larger than what was told.
    #[must_use]
    pub fn arranged(&self, order: &[Piece]) -> Option<Self> {
        let mut arranged = Self::default();
        let mut kept = 0;
        for piece in order {
            match piece {
                Piece::New { value } => {
                    arranged.push(Arc::new(HistoryMessage::from(value.clone())));
                }
                Piece::Kept(from, count) => {
                    kept += count;
                    let end = from.checked_add(*count)?;
                    if end > self.len || kept > self.len {
                        return None;
                    }
                    for index in *from..end {
                        arranged.push(Arc::clone(self.get(index)?));
                    }
                }
            }
        }
        arranged.share(self);
        Some(arranged)
    }

    /// Takes the messages of another history where they are the same, place by place, so that what is known of them need
    /// not be worked out again.
    pub fn renew(&mut self, before: &Self) {
        for (index, kept) in before.iter().enumerate() {
            let same = |own: &&Arc<HistoryMessage>| own.is_same(kept);
            if self.get(index).filter(same).is_some()
                && let Some(place) = self
                    .block_mut(index)
                    .and_then(|messages| messages.get_mut(index % BLOCK))
            {
                *place = Arc::clone(kept);
            }
        }
        self.share(before);
    }

    /// Takes the blocks of another history where they hold the very same messages.
    pub fn share(&mut self, other: &Self) {
        for (own, theirs) in self.blocks.iter_mut().zip(&other.blocks) {
            let alike = own.messages.len() == theirs.messages.len()
                && std::iter::zip(&own.messages, &theirs.messages).all(|(a, b)| Arc::ptr_eq(a, b));
            if alike {
                *own = Arc::clone(theirs);
            }
        }
    }

    /// How many messages from this one on both have in one block that they share. Looks at no message.
    #[must_use]
    pub fn shared_from(&self, other: &Self, index: usize) -> usize {
        if !index.is_multiple_of(BLOCK) {
            return 0;
        }
        let at = index / BLOCK;
        match (self.blocks.get(at), other.blocks.get(at)) {
            (Some(a), Some(b)) if Arc::ptr_eq(a, b) => a.messages.len(),
            _ => 0,
        }
    }

    /// Bytes of all messages as JSON, without the list around them.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let of = |block: &Arc<Block>| {
            let messages = || block.messages.iter().map(|message| message.size()).sum();
            *block.size.get_or_init(messages)
        };
        self.blocks.iter().map(of).sum()
    }

    /// Whether all messages together have more bytes as JSON. Counts no further than it must.
    #[must_use]
    pub fn is_over(&self, bytes: u64) -> bool {
        let mut total = 0;
        self.iter().any(|message| {
            total += message.size();
            total > bytes
        })
    }

    /// The hash of the list: over those of its blocks, and each of them over those of its messages, which are over their
    /// JSON texts. What is known already is not worked out again.
    pub fn digest(
        &self,
        of_message: impl Fn(&HistoryMessage) -> Digest,
        of_bytes: impl Fn(&[u8]) -> Digest,
    ) -> Digest {
        let of_block = |block: &Arc<Block>| {
            let message =
                |message: &Arc<HistoryMessage>| *message.digest.get_or_init(|| of_message(message));
            let all = || of_bytes(&block.messages.iter().flat_map(message).collect::<Vec<u8>>());
            *block.digest.get_or_init(all)
        };
        of_bytes(&self.blocks.iter().flat_map(of_block).collect::<Vec<u8>>())
    }
}

impl<M: Into<HistoryMessage>> FromIterator<M> for History {
    fn from_iter<I: IntoIterator<Item = M>>(messages: I) -> Self {
        let mut history = Self::default();
        let shared = messages.into_iter().map(|message| Arc::new(message.into()));
        shared.for_each(|message| history.push(message));
        history
    }
}

impl PartialEq for History {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len
            && std::iter::zip(self.iter(), other.iter()).all(|(a, b)| a.is_same(b))
    }
}

impl Serialize for History {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.len))?;
        for message in self.iter() {
            list.serialize_element(&**message)?;
        }
        list.end()
    }
}

/// An output together with the history that belongs into it.
pub(crate) struct WithHistory<'a>(pub(crate) &'a Value, pub(crate) &'a History);

impl Serialize for WithHistory<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.0.as_object().into_iter().flatten() {
            map.serialize_entry(key, value)?;
        }
        map.serialize_entry(MESSAGES, self.1)?;
        map.end()
    }
}

/// Whether two values have the same JSON text. (Objects with the keys in another order have not: plugins see the order.)
fn same_text(a: &Value, b: &Value) -> bool {
    let same_object = |a: &Map<String, Value>, b: &Map<String, Value>| {
        let fields = std::iter::zip(a, b);
        a.len() == b.len()
            && fields
                .into_iter()
                .all(|((a_key, a), (b_key, b))| a_key == b_key && same_text(a, b))
    };
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => same_object(a, b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && std::iter::zip(a, b).all(|(a, b)| same_text(a, b))
        }
        // -0 is not 0.
        (Value::Number(a), Value::Number(b)) if a.is_f64() && b.is_f64() => {
            a.as_f64().map(f64::to_bits) == b.as_f64().map(f64::to_bits)
        }
        (a, b) => a == b,
    }
}

/// Bytes of a value as JSON, counted without being kept.
#[must_use]
pub fn json_size<T: Serialize + ?Sized>(value: &T) -> u64 {
    struct Count(u64);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // A value always serialises, and counting cannot fail.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

#[cfg(test)]
mod tests;
