//! Compaction: a history that has grown too long is replaced by a summary of it.

use serde::{Deserialize, Serialize};

use crate::conversation::message::{ModelRef, UserMessage};
use crate::conversation::session::PartInput;
use crate::id::MessageId;

/// When a turn compacts the history by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutoCompact {
    /// Tokens of a request with its answer from which on the history counts as full. Absent: the model's limits are not
    /// known, and only a refusal of the model says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Tokens of the last finished step of the history; 0 when there is none, or when it was a summary.
    #[serde(default)]
    pub used: u64,
}

/// A turn that begins with a compaction, as a client or a user asked for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactRequest {
    /// The session goes on by itself afterwards.
    pub auto: bool,
    /// What the user says of the summary, such as what it must keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

/// What a compaction works with, read from the session when it begins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CompactionPlan {
    /// Model that writes the summary: the `compaction` agent's, else that of the conversation.
    pub model: ModelRef,
    /// US dollars for a million tokens: input, output, cache read, cache write.
    pub prices: [f64; 4],
    /// First message that stays as it is after the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail_start: Option<MessageId>,
    /// The prompt that did not fit; it is asked again after the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Box<Replay>>,
}

/// A prompt that is asked again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// The message; identifier and time are given again.
    pub message: UserMessage,
    /// Its parts, with a note in place of images and documents.
    pub parts: Vec<PartInput>,
}
