//! One message per tool execution (E1–E6): the output of agents, and the content of a conversation stream.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Millis, Object};

/// The key in a stored result that names the plugins which changed its displayed part.
pub const CHANGED_BY: &str = "outriggerChangedBy";

/// The key of the plugin that refused a call, in its message.
pub const REFUSED_BY: &str = "refused_by";

/// The key in a stored call or answer of another vendor's agent: `{name, tool?, unasked?, session?}`. `unasked`: no permission question
/// could have stopped the call.
pub const EXECUTOR: &str = "executor";

/// The converted output of any agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentOutput {
    /// A tool call starts.
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
        /// The output.
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
    /// Reasoning of the agent.
    Thought {
        /// The text.
        text: String,
        /// When.
        timestamp: Millis,
    },
    /// Output that its converter does not know, unmodified.
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

/// A message at its position in a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Placed {
    /// Its position: keys ascend (as bytes) in the order of the conversation. A message replaces the one with the same key.
    pub key: String,
    /// Its state.
    pub state: EntryState,
    /// The message.
    pub message: ConversationMessage,
}

/// The state of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryState {
    /// A tool runs, or a text is being written: it will be replaced.
    Running,
    /// It is complete.
    Done,
}

/// An event's change of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Puts this message at its key.
    Put(Placed),
    /// Removes the message with this key, and all whose keys start with it and `/`.
    Remove(String),
}

/// The result of a tool, for display (E3).
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
        /// The file.
        path: Option<String>,
    },
    /// Files were found.
    #[serde(rename_all = "camelCase")]
    FileList {
        /// The files.
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
