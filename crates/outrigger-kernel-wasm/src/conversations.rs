//! Conversations: changes by events (E5).

use outrigger_kernel::merge::{Conversation, Form};
use outrigger_protocol::buffer::Buffer;
use outrigger_protocol::event::Event;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::merged::{Change, Placed};
use serde::{Deserialize, Serialize};

use crate::open::Open;
use crate::{Answer, Empty, Failure, nothing, text};

/// Operations about conversations.
#[derive(Deserialize)]
pub(crate) enum ConversationOp {
    /// Opens an empty conversation.
    #[serde(rename = "conversation.open")]
    Open(Empty),
    /// Adds stored log records; those that are not events have no effect.
    #[serde(rename = "conversation.on")]
    On {
        /// Number.
        conversation: u32,
        /// Bodies of records.
        records: Vec<String>,
    },
    /// Closes it.
    #[serde(rename = "conversation.close")]
    Close {
        /// Number.
        conversation: u32,
    },
}

/// The conversations that a host follows.
#[derive(Default)]
pub(crate) struct Conversations {
    open: Open<Conversation>,
}

impl Conversations {
    pub(crate) fn answer(&mut self, op: ConversationOp) -> Answer {
        match op {
            ConversationOp::Open(Empty {}) => {
                let number = self.open.insert(Conversation::new(Form::Merged));
                Ok(number.to_string())
            }
            ConversationOp::On {
                conversation,
                records,
            } => {
                let open = self.open.get_mut(conversation);
                let open = open.ok_or_else(|| Failure::number("conversation", conversation))?;
                let mut changes = Vec::new();
                for body in records {
                    let event = event(&body).map_err(|error| {
                        let message = format!("cannot read a record: {error}");
                        Failure::new("kernel.request", message)
                    })?;
                    let changed = event.map(|event| open.on(&event)).unwrap_or_default();
                    changes.extend(changed.into_iter().map(Changed::from));
                }
                Ok(text(&changes))
            }
            ConversationOp::Close { conversation } => {
                self.open.close(conversation);
                nothing()
            }
        }
    }
}

/// Returns the event of a record if it changes a conversation; other events and records are not parsed.
pub(crate) fn event(body: &str) -> Result<Option<Event>, serde_json::Error> {
    let mut record: Buffer<'_> = serde_json::from_slice(body.as_bytes())?;
    let kind = record.take("type");
    let mut properties = record.take("properties").unwrap_or(Buffer::Null);
    let mut field = |name: &str| properties.take(name).unwrap_or(Buffer::Null);
    let session_id = SessionId::deserialize(field("sessionID"));
    Ok(Some(
        match kind.as_ref().and_then(Buffer::as_str).unwrap_or_default() {
            "message.updated" => Event::MessageUpdated {
                session_id: session_id?,
                info: Deserialize::deserialize(field("info"))?,
            },
            "message.removed" => Event::MessageRemoved {
                session_id: session_id?,
                message_id: Deserialize::deserialize(field("messageID"))?,
            },
            "message.part.updated" => Event::PartUpdated {
                session_id: session_id?,
                part: Deserialize::deserialize(field("part"))?,
                time: Deserialize::deserialize(field("time"))?,
            },
            "message.part.removed" => Event::PartRemoved {
                session_id: session_id?,
                message_id: Deserialize::deserialize(field("messageID"))?,
                part_id: Deserialize::deserialize(field("partID"))?,
            },
            _ => return Ok(None),
        },
    ))
}

/// Returns the JSON of a change.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Changed {
    Put(Placed),
    Remove(String),
}

impl From<Change> for Changed {
    fn from(change: Change) -> Self {
        match change {
            Change::Put(placed) => Self::Put(placed),
            Change::Remove(key) => Self::Remove(key),
        }
    }
}
