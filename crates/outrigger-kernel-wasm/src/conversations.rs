//! Conversations: what events change in them (E5).

use std::collections::BTreeMap;

use outrigger_kernel::merge::{Conversation, Form};
use outrigger_protocol::event::Event;
use outrigger_protocol::merged::{Change, Placed};
use serde::{Deserialize, Serialize};
use serde_json::{Value, from_value};

use crate::{Answer, Failure, nothing, text};

/// Operations about conversations.
#[derive(Deserialize)]
pub(crate) enum ConversationOp {
    /// One that has not heard of any message.
    #[serde(rename = "conversation.open")]
    Open {},
    /// Records of the log, as they are stored; those that are not events change nothing.
    #[serde(rename = "conversation.on")]
    On {
        /// Number.
        conversation: u32,
        /// Bodies of records.
        records: Vec<String>,
    },
    /// Nobody follows it any more.
    #[serde(rename = "conversation.close")]
    Close {
        /// Number.
        conversation: u32,
    },
}

/// The conversations that a host follows.
#[derive(Default)]
pub(crate) struct Conversations {
    last: u32,
    open: BTreeMap<u32, Conversation>,
}

impl Conversations {
    pub(crate) fn answer(&mut self, op: ConversationOp) -> Answer {
        match op {
            ConversationOp::Open {} => {
                self.last += 1;
                self.open.insert(self.last, Conversation::new(Form::Merged));
                Ok(self.last.to_string())
            }
            ConversationOp::On {
                conversation,
                records,
            } => {
                let open = self.open.get_mut(&conversation);
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
                self.open.remove(&conversation);
                nothing()
            }
        }
    }
}

/// The event of a record, where it changes a conversation; other events, and other records, are not read.
pub(crate) fn event(body: &str) -> Result<Option<Event>, serde_json::Error> {
    let mut record: Value = serde_json::from_slice(body.as_bytes())?;
    let kind = record.get("type").and_then(Value::as_str);
    let kind = kind.unwrap_or_default().to_owned();
    let mut field = |name: &str| {
        let field = record.get_mut("properties").and_then(|it| it.get_mut(name));
        field.map(Value::take).unwrap_or_default()
    };
    let session_id = from_value(field("sessionID"));
    Ok(Some(match kind.as_str() {
        "message.updated" => Event::MessageUpdated {
            session_id: session_id?,
            info: from_value(field("info"))?,
        },
        "message.removed" => Event::MessageRemoved {
            session_id: session_id?,
            message_id: from_value(field("messageID"))?,
        },
        "message.part.updated" => Event::PartUpdated {
            session_id: session_id?,
            part: from_value(field("part"))?,
            time: from_value(field("time"))?,
        },
        "message.part.removed" => Event::PartRemoved {
            session_id: session_id?,
            message_id: from_value(field("messageID"))?,
            part_id: from_value(field("partID"))?,
        },
        _ => return Ok(None),
    }))
}

/// A change as it is written.
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
