//! Frames of the bridge (C17): a remote controller requests, the bridge executes and answers. docs/bridge.md explains
//! them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tools::tool::ToolOutput;

/// The WebSocket subprotocol; its number changes when a frame does.
pub const SUBPROTOCOL: &str = "outrigger.bridge.v1";

/// Prefix of the subprotocol that carries the token, for pages, which cannot set headers.
pub const BEARER_PROTOCOL: &str = "bearer.";

/// `invoke`: execute this.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Invoke {
    /// Chosen by the controller; unique among the open calls of a connection.
    pub id: String,
    /// Contract: `read`, `write`, `edit` or `exec`; `bash` is `exec`.
    pub tool: String,
    /// Parameters of the contract.
    pub params: Value,
    /// How long it may take, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// The controller's session, for the audit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// `cancel`: the answer is no longer wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// Of the call.
    pub id: String,
}

/// What a controller sends.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ControllerFrame {
    /// Execute this.
    Invoke(Invoke),
    /// The answer is no longer wanted.
    Cancel(Cancel),
}

/// What a bridge sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum BridgeFrame {
    /// The first frame of a connection.
    Hello {
        /// Number of the protocol.
        protocol: u32,
        /// Folder that paths are relative to.
        root: String,
        /// What it executes.
        contracts: Vec<String>,
        /// Largest frame that it takes, in bytes: one over it costs the connection.
        #[serde(
            rename = "frameBytes",
            default,
            skip_serializing_if = "Option::is_none"
        )]
        frame_bytes: Option<u64>,
    },
    /// A call is done.
    Result {
        /// Of the call.
        id: String,
        /// What came out.
        output: ToolOutput,
    },
    /// A call failed or was refused, or a frame could not be read.
    Error {
        /// Of the call, where it could be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// Stable code.
        code: String,
        /// In words.
        message: String,
        /// What a command had printed before it was stopped at its deadline.
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
    /// All that is in it afterwards.
    pub content: String,
}

/// Parameters of `edit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EditParams {
    /// File.
    pub file_path: String,
    /// What is there.
    pub old_string: String,
    /// What is there afterwards.
    pub new_string: String,
    /// Every place where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replace_all: Option<bool>,
}

/// Parameters of `exec`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecParams {
    /// Command line.
    pub command: String,
    /// Folder that it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// How long it may run, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}
