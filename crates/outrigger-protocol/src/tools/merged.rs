//! One message per tool execution (E1–E6): what agents emit, and what a conversation stream carries.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Millis, Object};

/// The key, in what is kept of a result, that names the plugins which changed what a person is shown of it.
pub const CHANGED_BY: &str = "outriggerChangedBy";

/// The key, in what is kept of a call or an answer of another vendor's agent, that says whose it is: `{name, tool?, unasked?, session?}`.
/// `unasked`: no question could have stopped the call.
pub const EXECUTOR: &str = "executor";

/// What an agent of any make says, after its converter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentOutput {
    /// A tool call begins.
    ToolUse {
        /// The call.
        id: String,
        /// Tool.
        tool_name: String,
        /// Arguments.
        tool_input: Value,
        /// When.
        timestamp: Millis,
    },
    /// A tool call has ended.
    ToolResult {
        /// The call.
        tool_use_id: String,
        /// Tool.
        tool_name: String,
        /// What came out.
        result: Value,
        /// It failed.
        is_error: bool,
        /// When.
        timestamp: Millis,
    },
    /// Text of the agent.
    Text {
        /// The text.
        text: String,
        /// When.
        timestamp: Millis,
    },
    /// What the agent thought.
    Thought {
        /// The text.
        text: String,
        /// When.
        timestamp: Millis,
    },
    /// Something that its converter does not know, as it came.
    Other {
        /// The text.
        text: String,
        /// When.
        timestamp: Millis,
    },
}

/// A message of the conversation stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversationMessage {
    /// Identifier.
    pub id: String,
    /// `user`, `assistant`, `system`.
    pub role: String,
    /// `text`, `reasoning`, `tool_use`, `tool_result`, `tool_execution`, `file`, `error`, `step` …
    pub message_type: String,
    /// For people.
    pub content: String,
    /// When.
    pub timestamp: Millis,
    /// Structured.
    #[serde(default)]
    pub metadata: Object,
}

/// A message at its place in a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Placed {
    /// Where it stands: keys ascend (as bytes) in the order of the conversation. A message takes the place of the one that had its key.
    pub key: String,
    /// How far it is.
    pub state: EntryState,
    /// The message.
    pub message: ConversationMessage,
}

/// How far a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryState {
    /// A tool runs, or a text is being written: another will take its place.
    Running,
    /// It is complete.
    Done,
}

/// What an event changes in a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// This message stands at its key from now on.
    Put(Placed),
    /// What has this key is gone, and so is everything whose key begins with it and `/`.
    Remove(String),
}

/// What a tool did, for display (E3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "camelCase")]
pub enum Details {
    /// A file changed.
    #[serde(rename_all = "camelCase")]
    Diff {
        /// Before; empty for a new file.
        old_content: String,
        /// After.
        new_content: String,
        /// Where.
        path: Option<String>,
    },
    /// Files were found.
    #[serde(rename_all = "camelCase")]
    FileList {
        /// Which.
        files: Vec<String>,
    },
    /// A command ran.
    #[serde(rename_all = "camelCase")]
    CommandOutput {
        /// Standard output.
        stdout: String,
        /// Standard error.
        stderr: String,
        /// Exit code; absent when it was killed.
        exit_code: Option<i64>,
    },
}
