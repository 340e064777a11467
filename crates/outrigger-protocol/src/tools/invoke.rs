//! Frames of the bridge (C17): a remote controller sends requests, the bridge executes and answers them.
//! docs/bridge.md describes them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tools::tool::ToolOutput;

/// The WebSocket subprotocol; its number changes when a frame does.
pub const SUBPROTOCOL: &str = "outrigger.bridge.v1";

/// Prefix of the subprotocol that carries the token, for pages, which cannot set headers.
pub const BEARER_PROTOCOL: &str = "bearer.";

/// `invoke`: a request to execute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Invoke {
    /// Chosen by the controller; unique among the open calls of a connection.
    pub id: String,
    /// Contract: `read`, `write`, `edit` or `exec`; `bash` is `exec`.
    pub tool: String,
    /// Parameters of the contract.
    pub params: Value,
    /// Its deadline in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// The controller's session, for the audit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// `cancel`: withdraws a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// The id of the call.
    pub id: String,
}

/// A frame from a controller.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ControllerFrame {
    /// A request to execute.
    Invoke(Invoke),
    /// Withdraws a request.
    Cancel(Cancel),
}

/// A frame from a bridge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum BridgeFrame {
    /// The first frame of a connection.
    Hello {
        /// Number of the protocol.
        protocol: u32,
        /// The base folder of relative paths.
        root: String,
        /// The supported contracts.
        contracts: Vec<String>,
        /// Maximum bytes of a frame: a larger one closes the connection.
        #[serde(
            rename = "frameBytes",
            default,
            skip_serializing_if = "Option::is_none"
        )]
        frame_bytes: Option<u64>,
    },
    /// A call has completed.
    Result {
        /// The id of the call.
        id: String,
        /// The output.
        output: ToolOutput,
    },
    /// A call failed or was refused, or a frame could not be read.
    Error {
        /// The id of the call, if it could be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// Stable code.
        code: String,
        /// In words.
        message: String,
        /// The output of a command that was stopped at its deadline.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<String>,
    },
}

/// Parameters of `read`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReadParams {
    /// File or folder, relative to the bridge's folder or absolute in it.
    pub file_path: String,
    /// First line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Limit of lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// Parameters of `write`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WriteParams {
    /// File.
    pub file_path: String,
    /// The complete new content.
    pub content: String,
}

/// Parameters of `edit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EditParams {
    /// File.
    pub file_path: String,
    /// The text to replace.
    pub old_string: String,
    /// The replacement.
    pub new_string: String,
    /// Replaces every occurrence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replace_all: Option<bool>,
}

/// Parameters of `exec`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecParams {
    /// Command line.
    pub command: String,
    /// Its working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// Its timeout in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}
