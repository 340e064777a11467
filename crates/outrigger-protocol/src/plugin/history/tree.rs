//! The tree of a history's messages.
//!
//! Its nodes are shared between histories that grew out of one another, and each caches values derived from the messages
//! below it. So a new message costs as many nodes as the tree is high, however long the conversation is.

use std::sync::{Arc, OnceLock};

use super::{Digest, HistoryMessage};
use crate::message::MessageWithParts;
use crate::model::{Block, Messages, SharedMessage};

/// Messages in a leaf, and nodes in every other node.
pub(super) const WIDTH: usize = 16;
/// Messages in one block of a request.
const BLOCK: usize = WIDTH * WIDTH;

/// All nodes except the last one of each level are full, so messages are found by their index alone, and the hash of a
/// tree depends only on its messages.
#[derive(Clone, Debug)]
pub(super) struct Node {
    below: Below,
    /// The capacity below it.
    room: usize,
    size: OnceLock<u64>,
    digest: OnceLock<Digest>,
    is_stored: OnceLock<bool>,
    in_requests: OnceLock<Arc<Block>>,
}

#[derive(Clone, Debug)]
enum Below {
    Messages(Vec<Arc<HistoryMessage>>),
    Nodes(Vec<Arc<Node>>),
}

impl Default for Node {
    fn default() -> Self {
        Self::of(Below::Messages(Vec::new()), WIDTH)
    }
}

impl Node {
    fn of(below: Below, room: usize) -> Self {
        Self {
            below,
            room,
            size: OnceLock::new(),
            digest: OnceLock::new(),
            is_stored: OnceLock::new(),
            in_requests: OnceLock::new(),
        }
    }

    fn empty(room: usize) -> Self {
        if room == WIDTH {
            Self::default()
        } else {
            Self::of(Below::Nodes(Vec::new()), room)
        }
    }

    /// Builds the tree of these messages.
    pub(super) fn over(messages: Vec<Arc<HistoryMessage>>) -> Arc<Self> {
        let mut messages = messages.into_iter();
        let mut level = Vec::with_capacity(messages.len().div_ceil(WIDTH));
        while messages.len() > 0 {
            let leaf = messages.by_ref().take(WIDTH).collect();
            level.push(Arc::new(Self::of(Below::Messages(leaf), WIDTH)));
        }
        let mut room = WIDTH;
        while level.len() > 1 {
            room *= WIDTH;
            let above = level
                .chunks(WIDTH)
                .map(|nodes| Arc::new(Self::of(Below::Nodes(nodes.to_vec()), room)));
            level = above.collect();
        }
        level.pop().unwrap_or_default()
    }

    /// Returns the capacity.
    pub(super) fn room(&self) -> usize {
        self.room
    }

    /// Adds a level above, with this as its first node.
    pub(super) fn grow(self: &mut Arc<Self>) {
        let above = Self::of(Below::Nodes(vec![Arc::clone(self)]), self.room * WIDTH);
        *self = Arc::new(above);
    }

    /// Returns the nodes above the message at an index, starting with this one, and the position in each of them.
    fn path(self: &Arc<Self>, index: usize) -> impl Iterator<Item = (&Arc<Self>, usize)> {
        std::iter::successors(Some((self, index)), |(node, index)| match &node.below {
            Below::Messages(_) => None,
            Below::Nodes(nodes) => {
                let each = node.room / WIDTH;
                Some((nodes.get(index / each)?, index % each))
            }
        })
    }

    /// Returns the messages of the leaf with an index, and the position in it.
    pub(super) fn leaf(self: &Arc<Self>, index: usize) -> (&[Arc<HistoryMessage>], usize) {
        match self.path(index).last() {
            Some((node, place)) => match &node.below {
                Below::Messages(messages) => (messages, place),
                Below::Nodes(_) => (&[], place),
            },
            None => (&[], 0),
        }
    }

    /// Like [`Self::leaf`], mutable: clears the caches of the nodes above. `None` if the index exceeds the capacity.
    pub(super) fn leaf_mut(
        self: &mut Arc<Self>,
        index: usize,
    ) -> Option<(&mut Vec<Arc<HistoryMessage>>, usize)> {
        let own = Arc::make_mut(self);
        own.size = OnceLock::new();
        own.digest = OnceLock::new();
        own.is_stored = OnceLock::new();
        own.in_requests = OnceLock::new();
        match &mut own.below {
            Below::Messages(messages) => Some((messages, index)),
            Below::Nodes(nodes) => {
                let each = own.room / WIDTH;
                let at = index / each;
                if at == nodes.len() && at < WIDTH {
                    nodes.push(Arc::new(Self::empty(each)));
                }
                nodes.get_mut(at)?.leaf_mut(index % each)
            }
        }
    }

    /// Returns the tree of the first messages.
    pub(super) fn first_messages(self: &Arc<Self>, len: usize) -> Arc<Self> {
        let each = self.room / WIDTH;
        match &self.below {
            _ if len == 0 => Arc::default(),
            // No higher than necessary.
            Below::Nodes(nodes) if len <= each => match nodes.first() {
                Some(first) => first.first_messages(len),
                None => Arc::default(),
            },
            _ => self.cut(len),
        }
    }

    fn cut(self: &Arc<Self>, len: usize) -> Arc<Self> {
        if len >= self.room {
            return Arc::clone(self);
        }
        let below = match &self.below {
            Below::Messages(messages) => {
                Below::Messages(messages.iter().take(len).cloned().collect())
            }
            Below::Nodes(nodes) => {
                let each = self.room / WIDTH;
                let starts = (0..len).step_by(each);
                let kept = std::iter::zip(nodes, starts);
                Below::Nodes(kept.map(|(node, start)| node.cut(len - start)).collect())
            }
        };
        Arc::new(Self::of(below, self.room))
    }

    /// Returns whether all messages below are as in the store.
    pub(super) fn is_stored(&self) -> bool {
        *self.is_stored.get_or_init(|| match &self.below {
            Below::Messages(messages) => messages.iter().all(|it| it.stored().is_some()),
            Below::Nodes(nodes) => nodes.iter().all(|node| node.is_stored()),
        })
    }

    /// Appends the request messages of the messages below. A full node of the right size is a block, which is created
    /// once.
    pub(super) fn in_requests(
        &self,
        make: &impl Fn(&MessageWithParts) -> Vec<SharedMessage>,
        messages: &mut Messages,
    ) {
        if self.room == BLOCK && self.is_full() {
            let block = self.in_requests.get_or_init(|| {
                let mut single = Messages::default();
                self.below_in_requests(make, &mut single);
                Arc::new(single.iter().cloned().collect::<Vec<_>>().into())
            });
            messages.push_block(Arc::clone(block));
        } else {
            self.below_in_requests(make, messages);
        }
    }

    fn below_in_requests(
        &self,
        make: &impl Fn(&MessageWithParts) -> Vec<SharedMessage>,
        messages: &mut Messages,
    ) {
        match &self.below {
            Below::Messages(below) => {
                let below = below.iter().flat_map(|it| it.in_requests(make));
                below.cloned().for_each(|it| messages.push(it));
            }
            Below::Nodes(nodes) => nodes.iter().for_each(|it| it.in_requests(make, messages)),
        }
    }

    fn is_full(&self) -> bool {
        match &self.below {
            Below::Messages(messages) => messages.len() == WIDTH,
            Below::Nodes(nodes) => {
                nodes.len() == WIDTH && nodes.last().is_some_and(|last| last.is_full())
            }
        }
    }

    /// Takes the nodes of another tree that contain the very same messages. Returns whether all of this one is shared
    /// now.
    pub(super) fn share(self: &mut Arc<Self>, other: &Arc<Self>) -> bool {
        if Arc::ptr_eq(self, other) {
            return true;
        }
        // The tree of a longer list is higher, and the common part is below its first node.
        if self.room < other.room {
            let first = other.first();
            return first.is_some_and(|first| self.share(first));
        }
        let higher = self.room > other.room;
        let alike = match (&mut Arc::make_mut(self).below, &other.below) {
            (Below::Nodes(own), _) if higher => {
                if let Some(first) = own.first_mut() {
                    first.share(other);
                }
                false
            }
            (Below::Nodes(own), Below::Nodes(theirs)) => {
                let both = std::iter::zip(own.iter_mut(), theirs);
                let shared = both.filter_map(|(own, theirs)| own.share(theirs).then_some(()));
                shared.count() == theirs.len() && own.len() == theirs.len()
            }
            (Below::Messages(own), Below::Messages(theirs)) => {
                let same = |(a, b): (&Arc<_>, &Arc<_>)| Arc::ptr_eq(a, b);
                own.len() == theirs.len() && std::iter::zip(&*own, theirs).all(same)
            }
            _ => false,
        };
        if alike {
            *self = Arc::clone(other);
        }
        alike
    }

    fn first(&self) -> Option<&Arc<Self>> {
        match &self.below {
            Below::Messages(_) => None,
            Below::Nodes(nodes) => nodes.first(),
        }
    }

    /// Returns the capacity of the largest node that starts at an index and is in both trees. Compares no messages.
    pub(super) fn shared_from(self: &Arc<Self>, other: &Arc<Self>, index: usize) -> Option<usize> {
        let begins = |(node, place)| (place == 0).then_some(node);
        let own = self.path(index).filter_map(begins);
        let is_theirs = |node: &&Arc<Self>| {
            let mut theirs = other.path(index).filter_map(begins);
            theirs.any(|other| Arc::ptr_eq(node, other))
        };
        own.into_iter().find(is_theirs).map(|node| node.room)
    }

    /// Returns the length of the messages below as JSON in bytes.
    pub(super) fn size(&self) -> u64 {
        *self.size.get_or_init(|| match &self.below {
            Below::Messages(messages) => messages.iter().map(|message| message.size()).sum(),
            Below::Nodes(nodes) => nodes.iter().map(|node| node.size()).sum(),
        })
    }

    /// Returns the hash over the hashes below.
    pub(super) fn digest(
        &self,
        of_message: &impl Fn(&HistoryMessage) -> Digest,
        of_bytes: &impl Fn(&[u8]) -> Digest,
    ) -> Digest {
        *self.digest.get_or_init(|| {
            let mut below = Vec::with_capacity(WIDTH * size_of::<Digest>());
            match &self.below {
                Below::Messages(messages) => below.extend(
                    messages
                        .iter()
                        .flat_map(|message| *message.digest.get_or_init(|| of_message(message))),
                ),
                Below::Nodes(nodes) => {
                    below.extend(
                        nodes
                            .iter()
                            .flat_map(|node| node.digest(of_message, of_bytes)),
                    );
                }
            }
            of_bytes(&below)
        })
    }
}
