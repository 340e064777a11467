//! The published form of a conversation (`/outrigger/v1`), complete: nothing in it is shortened or fetched
//! later.

use std::collections::BTreeMap;
use std::sync::Arc;

use outrigger_api::{Channel, Conversation, Entry};
use outrigger_conversation::{Nothing, Reader};
use outrigger_kernel::merge::{Author, Converter, Form};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::MessageWithParts;
use outrigger_protocol::origin::Origin;
use outrigger_store::{Store, StoreError};
use serde::{Deserialize, Serialize};

use crate::select::Stored;

/// The value of `format`.
pub const FORMAT: &str = "outrigger-export";
/// The value of `version` that this program writes, and the highest that it reads.
pub const VERSION: u32 = 1;

/// A file of conversations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// The requested one, followed by those of its subagents.
    pub conversations: Vec<Exported>,
}

/// A conversation with all its entries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exported {
    /// The conversation, as in `/outrigger/v1`.
    pub conversation: Conversation,
    /// The program that it was imported from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Its entries in order; tool calls are merged with their results.
    pub entries: Vec<Entry>,
}

impl Document {
    /// Creates a document of stored sessions.
    ///
    /// # Errors
    /// Those of the store.
    pub fn of(store: &Store, sessions: &[Stored]) -> Result<Self, StoreError> {
        let reader = Reader::new(store.clone(), Arc::new(Nothing));
        let converter = Converter::default();
        let mut conversations = Vec::new();
        for stored in sessions {
            let mut conversation = reader.conversation(&stored.session, &BTreeMap::new(), &[])?;
            // The messages are here as they are exported; this would be as it is stored.
            conversation.opening = None;
            let messages = stored.messages.iter();
            let entries = messages.flat_map(|message| {
                entries(&converter, &conversation.id, &conversation.task, message)
            });
            conversations.push(Exported {
                origin: Origin::of(&stored.session),
                entries: entries.collect(),
                conversation,
            });
        }
        Ok(Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            conversations,
        })
    }
}

fn entries(
    converter: &Converter,
    conversation: &SessionId,
    task: &SessionId,
    message: &MessageWithParts,
) -> Vec<Entry> {
    let author = Author::from(&message.info);
    let channel = Channel {
        conversation: conversation.clone(),
        task: task.clone(),
        attempt: author.attempt.clone(),
    };
    let parts = message.parts.iter();
    let placed = parts
        .flat_map(|part| converter.part(&author, part, Form::Merged))
        .chain(Converter::info(&message.info));
    placed
        .map(|placed| Entry {
            key: placed.key,
            state: placed.state,
            channel: channel.clone(),
            message: placed.message,
            shortened: Vec::new(),
        })
        .collect()
}
