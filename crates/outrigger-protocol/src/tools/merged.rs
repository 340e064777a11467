//! One message per tool execution (E1–E6): what agents emit, and what a conversation stream carries.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Millis, Object};

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
}

/// A message of the conversation stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversationMessage {
    /// Identifier.
    pub id: String,
    /// `user`, `assistant`, `system`.
    pub role: String,
    /// `text`, `tool_use`, `tool_result`, `tool_execution` …
    pub message_type: String,
    /// For people.
    pub content: String,
    /// When.
    pub timestamp: Millis,
    /// Structured.
    #[serde(default)]
    pub metadata: Object,
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
