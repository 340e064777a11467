//! Compaction: a history that has grown too long is replaced by a summary of it.

use serde::{Deserialize, Serialize};

use crate::conversation::message::{ModelRef, UserMessage};
use crate::conversation::session::PartInput;
use crate::id::MessageId;
use crate::model::Prices;

/// When a turn compacts the history automatically.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutoCompact {
    /// Tokens of a request including its answer from which on the history is full. Absent: the model's limits are
    /// unknown, and only its refusal shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Tokens of the last finished step of the history; 0 when there is none, or when it was a summary.
    #[serde(default)]
    pub used: u64,
}

/// A turn that starts with a compaction requested by a client or the user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactRequest {
    /// The session continues automatically afterwards.
    pub auto: bool,
    /// The user's instructions for the summary, such as what it must keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// The inputs of a compaction, read from the session when it starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CompactionPlan {
    /// Model that writes the summary: the `compaction` agent's, otherwise that of the conversation.
    pub model: ModelRef,
    /// Prices of its model.
    pub prices: Prices,
    /// First message that is kept unchanged after the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail_start: Option<MessageId>,
    /// The prompt that did not fit; it is repeated after the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Box<Replay>>,
}

/// A repeated prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// The message; identifier and time are reassigned.
    pub message: UserMessage,
    /// Its parts, with a note replacing images and documents.
    pub parts: Vec<PartInput>,
}
