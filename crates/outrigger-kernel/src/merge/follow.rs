//! Changes that events make to a conversation, and a client that applies them.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use outrigger_protocol::event::Event;
use outrigger_protocol::id::MessageId;
use outrigger_protocol::merged::{Change, Placed};
use outrigger_protocol::message::MessageInfo;

use super::convert::{Author, Converter, Form};

/// Follows the events of a session.
#[derive(Default)]
pub struct Conversation {
    converter: Converter,
    form: Form,
    authors: BTreeMap<MessageId, Author>,
}

impl Conversation {
    /// Creates one with this form of tool calls.
    #[must_use]
    pub fn new(form: Form) -> Self {
        Self {
            form,
            ..Self::default()
        }
    }

    /// Registers a message that existed before.
    pub fn knows(&mut self, info: &MessageInfo) {
        self.authors.insert(info.id().clone(), Author::from(info));
    }

    /// Returns the changes of an event; empty for most.
    #[must_use]
    pub fn on(&mut self, event: &Event) -> Vec<Change> {
        let author = match event {
            Event::MessageUpdated { info, .. } => {
                self.knows(info);
                None
            }
            Event::PartUpdated { part, .. } => self.authors.get(&part.message_id),
            _ => None,
        };
        let changes = self.converter.event(event, author, self.form);
        if let Event::MessageRemoved { message_id, .. } = event {
            self.authors.remove(message_id);
        }
        changes
    }
}

/// The messages of a conversation, by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript(BTreeMap<String, Placed>);

impl Transcript {
    /// Applies a change. Idempotent.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Put(placed) => {
                self.0.insert(placed.key.clone(), placed);
            }
            Change::Remove(key) => {
                let below = alloc::format!("{key}/");
                self.0.retain(|it, _| *it != key && !it.starts_with(&below));
            }
        }
    }

    /// In the order of the conversation.
    pub fn iter(&self) -> impl Iterator<Item = &Placed> {
        self.0.values()
    }
}
