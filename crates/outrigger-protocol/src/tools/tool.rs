//! Tools as the model, plugins and the runtime see them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{CallId, MessageId, SessionId};
use crate::records::provenance::Provenance;
use crate::tagged::tagged;

/// A tool's specification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Name for the model.
    pub name: String,
    /// For the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// It changes nothing, so a call whose outcome is unknown may be repeated (D7).
    #[serde(default)]
    pub read_only: bool,
    /// Not shown to the model (`invalid`), but can be run.
    #[serde(default)]
    pub hidden: bool,
    /// Its source: `builtin`, `plugin:ID`, `mcp:NAME`.
    pub source: String,
}

/// A call, as the model made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Identifier, unique in the session.
    pub call_id: CallId,
    /// Session.
    pub session_id: SessionId,
    /// The assistant message of the call.
    pub message_id: MessageId,
    /// The calling agent.
    pub agent: String,
    /// Tool.
    pub tool: String,
    /// Arguments.
    pub input: Value,
    /// Who caused its turn.
    #[serde(default, skip_serializing_if = "Provenance::is_empty")]
    pub provenance: Provenance,
}

/// The output of a tool.
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
#[tagged("outcome")]
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcome {
    /// The tool answered.
    Completed {
        /// Arguments it ran with, after the hooks.
        input: Value,
        /// Its answer, after the hooks.
        output: ToolOutput,
    },
    /// The call failed, was refused, or was stopped.
    Failed {
        /// The actual or intended arguments.
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
