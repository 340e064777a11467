//! Large payloads of hooks: by file, and as differences to what a process keeps. The files are made by the host alone; see
//! `docs/plugin-protocol.md`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plugin::hook::Change;
use crate::plugin::rpc::handler::{HandlerRef, OpenField};

/// As [`crate::plugin::rpc::HookRun`], with the items in a file: `{"token", "items"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookInvokeFile {
    /// OpenCode's name of the hook.
    pub hook: String,
    /// Handlers, as in [`crate::plugin::rpc::HookRun::handlers`].
    pub handlers: Vec<HandlerRef>,
    /// What may be changed.
    #[serde(default)]
    pub open: Vec<OpenField>,
    /// Path of the file. The host removes it when the call has ended.
    pub file: String,
    /// What stands in the file, too, so that no other file is taken for it.
    pub token: String,
}

/// A handler's answer is too large for a frame of its own: the process asks for a file to write it into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileOpen {
    /// Id of the `hook.run`, `hook.invoke.file` or `hook.mirror` request.
    pub call: u64,
    /// Index of the handler whose result comes next.
    pub handler: usize,
    /// How large the file will be, in bytes.
    pub bytes: u64,
}

/// The answer to [`FileOpen`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileOpened {
    /// Path of an empty file.
    pub file: String,
    /// Valid once: for the result of that handler, in the file and in [`crate::plugin::rpc::HookResult::file`].
    pub token: String,
}

/// What a file for an answer holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileAnswer {
    /// From [`FileOpened::token`].
    pub token: String,
    /// As [`crate::plugin::hook::Patch::items`].
    pub items: Vec<Vec<Change>>,
    /// As [`crate::plugin::hook::Patch::order`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Vec<Piece>>,
}

/// Runs `experimental.chat.messages.transform` over a list of messages that the process knows in part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HookMirror {
    /// OpenCode's name of the hook.
    pub hook: String,
    /// Handlers, as in [`crate::plugin::rpc::HookRun::handlers`].
    pub handlers: Vec<HandlerRef>,
    /// What may be changed.
    #[serde(default)]
    pub open: Vec<OpenField>,
    /// `input` of the handlers.
    pub input: Value,
    /// Whose messages they are: what the process keeps, it keeps by this.
    pub session: String,
    /// The list that [`Piece::Kept`] counts in: the `revision` of an earlier call. Absent when the list is given whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<u64>,
    /// Number of the list that this call gives; the process keeps it.
    pub revision: u64,
    /// Its size as JSON, in bytes; the process keeps no more than it has room for.
    pub bytes: u64,
    /// The list; absent when it is in a file: `{"token", "pieces"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pieces: Option<Vec<Piece>>,
    /// Path of the file, as in [`HookInvokeFile`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Token of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// A part of a list, in terms of an earlier list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Piece {
    /// So many elements of the earlier list, from this index on.
    Kept(usize, usize),
    /// A new element.
    New {
        /// The element.
        value: Value,
    },
}
