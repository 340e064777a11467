//! A conversation as passed to `experimental.chat.messages.transform`.
//!
//! A run of that hook over a long conversation mostly changes nothing, and the next run gets the same messages and one more. So
//! messages are shared between the agent, the chain and what a plugin process already has, and values derived from a message (its
//! size, its hash) are cached with it. They are in a [tree](tree) whose nodes are shared too: a run costs the host what is new, not
//! the whole conversation (A14).

mod tree;

use std::sync::{Arc, OnceLock};

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::conversation::message::MessageWithParts;
use crate::model::{Messages, SharedMessage};
use crate::plugin::transfer::Piece;
use tree::Node;

/// The field of a payload's output that a history replaces.
pub const MESSAGES: &str = "messages";

/// SHA-256.
pub type Digest = [u8; 32];

/// A shared message. Values cached with it never become stale, because it is immutable.
#[derive(Debug)]
pub struct HistoryMessage {
    content: Content,
    size: OnceLock<u64>,
    digest: OnceLock<Digest>,
    in_requests: OnceLock<Box<[SharedMessage]>>,
}

#[derive(Clone, Debug)]
enum Content {
    /// As in the store.
    Stored(Box<MessageWithParts>),
    /// As returned by a plugin: it may not be a message at all.
    Left(Value),
}

impl HistoryMessage {
    fn of(content: Content) -> Self {
        Self {
            content,
            size: OnceLock::new(),
            digest: OnceLock::new(),
            in_requests: OnceLock::new(),
        }
    }

    /// Returns its messages in requests to models: created once, however many requests there are. Empty if it is not a message.
    fn in_requests(
        &self,
        make: impl Fn(&MessageWithParts) -> Vec<SharedMessage>,
    ) -> &[SharedMessage] {
        self.in_requests.get_or_init(|| {
            self.stored()
                .map(make)
                .unwrap_or_default()
                .into_boxed_slice()
        })
    }

    /// Returns the message as in the store; `None` for one that a plugin has changed or created.
    #[must_use]
    pub fn stored(&self) -> Option<&MessageWithParts> {
        match &self.content {
            Content::Stored(message) => Some(message),
            Content::Left(_) => None,
        }
    }

    /// Returns its JSON form.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match &self.content {
            // A message can always be converted to JSON.
            Content::Stored(message) => crate::buffer::to_value(message),
            Content::Left(value) => value.clone(),
        }
    }

    /// Returns its id, if it has one.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        match &self.content {
            Content::Stored(message) => Some(message.info.id().as_str()),
            Content::Left(value) => value.get("info")?.get("id")?.as_str(),
        }
    }

    /// Sets the length of its JSON text, which is known after writing it, so that it need not be counted.
    pub fn has_size(&self, bytes: u64) {
        let _ = self.size.set(bytes);
    }

    /// Returns the length of its JSON text in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        *self.size.get_or_init(|| json_size(self))
    }

    /// Returns whether two messages have the same JSON text. A message from a plugin never equals one of the store, whatever its
    /// content.
    #[must_use]
    pub fn is_same(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        Arc::ptr_eq(self, other)
            || match (&self.content, &other.content) {
                (Content::Stored(a), Content::Stored(b)) => a == b,
                (Content::Left(a), Content::Left(b)) => same_text(a, b),
                _ => false,
            }
    }

    /// Copies cached values of one with the same text.
    pub fn learn(&self, same: &Self) {
        if std::ptr::eq(self, same) {
            return;
        }
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
    root: Arc<Node>,
    len: usize,
}

impl History {
    /// Returns the number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Creates a history of these messages.
    #[must_use]
    pub fn of(messages: Vec<Arc<HistoryMessage>>) -> Self {
        let len = messages.len();
        Self {
            root: Node::over(messages),
            len,
        }
    }

    /// Returns the index of the partition point: the number of messages from the start for which `is_before` is true. All of these
    /// must come first.
    pub fn partition_point(&self, is_before: impl Fn(&HistoryMessage) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low.midpoint(high);
            match self.get(middle) {
                Some(message) if is_before(message) => low = middle + 1,
                _ => high = middle,
            }
        }
        low
    }

    /// Returns a message.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Arc<HistoryMessage>> {
        let (messages, place) = self.root.leaf(index);
        messages.get(place)
    }

    /// Iterates over all messages.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<HistoryMessage>> + Clone {
        (0..self.len)
            .step_by(tree::WIDTH)
            .flat_map(|index| self.root.leaf(index).0)
    }

    /// Iterates over the messages from an index on.
    pub fn iter_from(&self, index: usize) -> impl Iterator<Item = &Arc<HistoryMessage>> {
        let leaf = index - index % tree::WIDTH;
        (leaf..self.len)
            .step_by(tree::WIDTH)
            .flat_map(|index| self.root.leaf(index).0)
            .skip(index - leaf)
    }

    /// Appends a message.
    pub fn push(&mut self, message: Arc<HistoryMessage>) {
        if self.len == self.root.room() {
            self.root.grow();
        }
        if let Some((messages, _)) = self.root.leaf_mut(self.len) {
            messages.push(message);
            self.len += 1;
        }
    }

    /// Replaces a message; returns `false` if the index is out of range.
    pub fn set(&mut self, index: usize, message: HistoryMessage) -> bool {
        let place = self.place(index);
        let found = place.is_some();
        if let Some(place) = place {
            *place = Arc::new(message);
        }
        found
    }

    /// Changes the JSON form of a message; `None` if the index is out of range.
    pub fn change<T>(&mut self, index: usize, change: impl FnOnce(&mut Value) -> T) -> Option<T> {
        let place = self.place(index)?;
        // A message changed earlier in the same answer is not shared, so it is copied only once.
        let nothing = Arc::new(HistoryMessage::from(Value::Null));
        let mut value = std::mem::replace(place, nothing).into_value();
        let result = change(&mut value);
        *place = Arc::new(HistoryMessage::from(value));
        Some(result)
    }

    // Returns the slot of an existing message, to replace it.
    fn place(&mut self, index: usize) -> Option<&mut Arc<HistoryMessage>> {
        if index >= self.len {
            return None;
        }
        let (messages, place) = self.root.leaf_mut(index)?;
        messages.get_mut(place)
    }

    /// Returns the list described by `order`; `None` if it refers to messages that do not exist, or keeps more than exist: the list
    /// is never much larger than its description.
    #[must_use]
    pub fn arranged(&self, order: &[Piece]) -> Option<Self> {
        let mut arranged = Self::default();
        let mut kept = 0_usize;
        for piece in order {
            match piece {
                Piece::New { value } => {
                    arranged.push(Arc::new(HistoryMessage::from(value.clone())));
                }
                Piece::Kept(from, count) => {
                    kept = kept.checked_add(*count)?;
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

    /// Returns the first `len` messages.
    #[must_use]
    pub fn first(&self, len: usize) -> Self {
        let len = len.min(self.len);
        let root = self.root.first_messages(len);
        Self { root, len }
    }

    /// Returns whether all messages are as in the store.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.root.is_stored()
    }

    /// Takes the messages of another history at each index where they are equal, so that their cached values are reused.
    pub fn renew(&mut self, before: &Self) {
        let mut index = 0;
        while index < self.len.min(before.len) {
            let shared = self.shared_from(before, index);
            if shared > 0 {
                index += shared;
                continue;
            }
            if let (Some(own), Some(kept)) = (self.get(index), before.get(index))
                && !Arc::ptr_eq(own, kept)
                && own.is_same(kept)
                && let Some(place) = self.place(index)
            {
                *place = Arc::clone(kept);
            }
            index += 1;
        }
        self.share(before);
    }

    /// Returns the messages of requests to models; `make` converts one, excluding system messages. Cached per message, and for
    /// blocks of messages.
    #[must_use]
    pub fn in_requests(&self, make: impl Fn(&MessageWithParts) -> Vec<SharedMessage>) -> Messages {
        let mut messages = Messages::default();
        self.root.in_requests(&make, &mut messages);
        messages
    }

    /// Takes cached values of another history where both have the very same messages.
    pub fn share(&mut self, other: &Self) {
        self.root.share(&other.root);
    }

    /// Returns how many messages from an index on both are known to share. Compares no messages; 0 if that would be necessary.
    #[must_use]
    pub fn shared_from(&self, other: &Self, index: usize) -> usize {
        let room = self.root.shared_from(&other.root, index).unwrap_or(0);
        room.min(self.len.saturating_sub(index))
    }

    /// Returns whether the first `len` messages are the very same ones as those of another history. Equal messages that are not
    /// shared do not count.
    #[must_use]
    pub fn begins_like(&self, other: &Self, len: usize) -> bool {
        if len > self.len.min(other.len) {
            return false;
        }
        let mut index = 0;
        while index < len {
            let shared = self.shared_from(other, index);
            let same = match (self.get(index), other.get(index)) {
                (Some(own), Some(other)) => Arc::ptr_eq(own, other),
                _ => false,
            };
            if shared == 0 && !same {
                return false;
            }
            index += shared.max(1);
        }
        true
    }

    /// Returns the length of all messages as JSON in bytes, without the list around them.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.root.size()
    }

    /// Returns whether all messages together exceed `bytes` as JSON. Counts no further than necessary.
    #[must_use]
    pub fn is_over(&self, bytes: u64) -> bool {
        let mut total = 0;
        self.iter().any(|message| {
            total += message.size();
            total > bytes
        })
    }

    /// Returns the hash of the list: over hashes of its messages' JSON texts, and again over groups of sixteen, up to the root of
    /// the tree. Cached hashes are reused.
    pub fn digest(
        &self,
        of_message: impl Fn(&HistoryMessage) -> Digest,
        of_bytes: impl Fn(&[u8]) -> Digest,
    ) -> Digest {
        self.root.digest(&of_message, &of_bytes)
    }
}

impl<M: Into<HistoryMessage>> FromIterator<M> for History {
    fn from_iter<I: IntoIterator<Item = M>>(messages: I) -> Self {
        Self::of(messages.into_iter().map(|it| Arc::new(it.into())).collect())
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

/// An output together with its history.
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

/// Returns whether two values have the same JSON text. (Objects with another order of keys do not: plugins see the order.)
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

/// Counts the bytes of a value as JSON without storing it.
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
    // A value can always be serialized, and counting cannot fail.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

#[cfg(test)]
mod tests;
