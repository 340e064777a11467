//! Tools as the model, plugins and the runtime see them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{CallId, MessageId, SessionId};
use crate::records::provenance::Provenance;

/// What a tool says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Name, as the model calls it.
    pub name: String,
    /// For the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// It changes nothing, so a call whose outcome is unknown may be made again (D7).
    #[serde(default)]
    pub read_only: bool,
    /// Not shown to the model (`invalid`), though it can be run.
    #[serde(default)]
    pub hidden: bool,
    /// Who brings it: `builtin`, `plugin:ID`, `mcp:NAME`.
    pub source: String,
}

/// A call, as the model made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Identifier, unique in the session.
    pub call_id: CallId,
    /// Session.
    pub session_id: SessionId,
    /// Assistant message that holds the call.
    pub message_id: MessageId,
    /// Agent that calls.
    pub agent: String,
    /// Tool.
    pub tool: String,
    /// Arguments.
    pub input: Value,
    /// Who caused the turn that it is made in.
    #[serde(default, skip_serializing_if = "Provenance::is_empty")]
    pub provenance: Provenance,
}

/// What a tool answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// For people.
    pub title: String,
    /// For the model.
    pub output: String,
    /// Structured.
    #[serde(default)]
    pub metadata: Value,
    /// Files for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<Vec<Value>>,
}

/// How a tool call ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ToolOutcome {
    /// It answered.
    Completed {
        /// Arguments it ran with, after the hooks.
        input: Value,
        /// Its answer, after the hooks.
        output: ToolOutput,
    },
    /// It failed, was refused, or was stopped.
    Failed {
        /// Arguments it ran with, or would have.
        input: Value,
        /// Stable code: `tool.not_found`, `tool.invalid_input`, `tool.denied`, `tool.blocked`, `tool.timeout`,
        /// `tool.cancelled`, `tool.interrupted`, `tool.failed`.
        code: String,
        /// For the model.
        message: String,
        /// What it had reported before it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
    },
}
