//! What a message consists of: texts, thoughts, calls of tools, and what a step has used.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{CallId, MessageId, PartId, SessionId};
use crate::records::provenance::Provenance;
use crate::{Millis, Object};

/// Tokens that a request used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tokens {
    /// All of them; absent until a step has finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Sent, cache hits not counted.
    pub input: u64,
    /// Received, reasoning not counted.
    pub output: u64,
    /// Received as reasoning.
    pub reasoning: u64,
    /// Served from or written to the provider's cache.
    pub cache: CacheTokens,
}

/// Tokens served from or written to a provider's prompt cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CacheTokens {
    /// Read from the cache.
    pub read: u64,
    /// Written to the cache.
    pub write: u64,
}

/// A part of a message. The keys that every part has stand beside its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Identifier.
    pub id: PartId,
    /// Session.
    #[serde(rename = "sessionID")]
    pub session_id: SessionId,
    /// Message.
    #[serde(rename = "messageID")]
    pub message_id: MessageId,
    /// What it is.
    #[serde(flatten)]
    pub kind: PartKind,
}

/// Start and end of a part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartTime {
    /// Begun.
    pub start: Millis,
    /// Ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Millis>,
    /// When the output of a tool call was taken out of requests to save room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted: Option<Millis>,
}

/// The kinds of part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(
    clippy::large_enum_variant,
    reason = "tool calls are the most common parts and the largest; a box for each would cost more than it saves"
)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum PartKind {
    /// Text of the user or the model.
    Text(TextPart),
    /// What the model thought.
    Reasoning(ReasoningPart),
    /// A file or image put in by the user.
    File(Object),
    /// A named agent put in by the user (`@agent`).
    Agent(Object),
    /// A subagent that a command shall start.
    Subtask(Object),
    /// A tool call.
    Tool(ToolPart),
    /// A model step begins.
    StepStart(Object),
    /// A model step has ended.
    StepFinish(StepFinishPart),
    /// Files that a step changed: `{hash, files}`.
    Patch(Object),
    /// A file snapshot.
    Snapshot(Object),
    /// A model request that was tried again.
    Retry(Object),
    /// A compaction was asked for.
    Compaction(Object),
}

impl PartKind {
    /// The value of `type` on the wire.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Reasoning(_) => "reasoning",
            Self::File(_) => "file",
            Self::Agent(_) => "agent",
            Self::Subtask(_) => "subtask",
            Self::Tool(_) => "tool",
            Self::StepStart(_) => "step-start",
            Self::StepFinish(_) => "step-finish",
            Self::Patch(_) => "patch",
            Self::Snapshot(_) => "snapshot",
            Self::Retry(_) => "retry",
            Self::Compaction(_) => "compaction",
        }
    }
}

/// Text of a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TextPart {
    /// The text.
    pub text: String,
    /// Made by the program, not typed by the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synthetic: Option<bool>,
    /// Shown to the user, not sent to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<bool>,
    /// When it streamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<PartTime>,
    /// Keys that a plugin or provider added.
    #[serde(flatten)]
    pub extra: Object,
}

/// Reasoning of the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReasoningPart {
    /// The text.
    pub text: String,
    /// When it streamed.
    pub time: PartTime,
    /// What the provider wants back with it (signatures).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// Keys that a plugin added.
    #[serde(flatten)]
    pub extra: Object,
}

/// The end of a model step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepFinishPart {
    /// Why the model stopped.
    pub reason: String,
    /// Hash of the file snapshot after the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// Tokens of the step.
    pub tokens: Tokens,
    /// Price of the step in US dollars.
    pub cost: f64,
}

/// A tool call and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolPart {
    /// The call.
    #[serde(rename = "callID")]
    pub call_id: CallId,
    /// Name of the tool.
    pub tool: String,
    /// How far it is.
    pub state: ToolState,
    /// What the provider wants back with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// Who caused it, where that was not the user and the model alone. Not a key of OpenCode.
    #[serde(default, skip_serializing_if = "Provenance::is_plain")]
    pub provenance: Provenance,
    /// Keys that a plugin added.
    #[serde(flatten)]
    pub extra: Object,
}

/// The states of a tool call. `Completed` and `Error` are final.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum ToolState {
    /// The model is still writing the arguments.
    Pending {
        /// Always `{}`.
        input: Value,
        /// The arguments as far as they have come.
        raw: String,
    },
    /// The tool runs.
    Running {
        /// Arguments.
        input: Value,
        /// What the tool says of itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// What the tool reports while it runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
        /// Begun.
        time: PartTime,
    },
    /// The tool has answered.
    Completed {
        /// Arguments.
        input: Value,
        /// What the model reads.
        output: String,
        /// What people read.
        title: String,
        /// Structured result.
        metadata: Value,
        /// Begun and ended.
        time: PartTime,
        /// Files for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attachments: Option<Vec<Value>>,
    },
    /// The tool has failed.
    Error {
        /// Arguments.
        input: Value,
        /// What the model reads.
        error: String,
        /// Structured result so far.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
        /// Begun and ended.
        time: PartTime,
    },
}

impl ToolState {
    /// Nothing will change any more.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Completed { .. } | Self::Error { .. })
    }
    /// The arguments.
    #[must_use]
    pub fn input(&self) -> &Value {
        match self {
            Self::Pending { input, .. }
            | Self::Running { input, .. }
            | Self::Completed { input, .. }
            | Self::Error { input, .. } => input,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parts_keep_opencode_form_and_unknown_keys() {
        let wire = json!({"id":"prt_1","sessionID":"ses_1","messageID":"msg_1","type":"tool","callID":"call_1","tool":"read",
            "state":{"status":"running","input":{"filePath":"/a"},"time":{"start":1}},"fromPlugin":true});
        let part: Part = serde_json::from_value(wire.clone()).unwrap();
        assert!(matches!(&part.kind, PartKind::Tool(t) if !t.state.is_final()));
        assert_eq!(serde_json::to_value(&part).unwrap(), wire);
    }
}
