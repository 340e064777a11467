//! Large hook payloads: by file, and as differences to what a process keeps. Only the host creates the files; see
//! `docs/plugin-protocol.md`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plugin::hook::Change;
use crate::plugin::rpc::handler::{HandlerRef, OpenField};

/// Like [`crate::plugin::rpc::HookRun`], with the items in a file: `{"token", "items"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookInvokeFile {
    /// OpenCode's name of the hook.
    pub hook: String,
    /// Handlers, as in [`crate::plugin::rpc::HookRun::handlers`].
    pub handlers: Vec<HandlerRef>,
    /// What may be changed.
    #[serde(default)]
    pub open: Vec<OpenField>,
    /// Path of the file. The host removes it after the call.
    pub file: String,
    /// Also in the file, so that no other file is mistaken for it.
    pub token: String,
}

/// A handler's answer is too large for a frame: the process requests a file to write it to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileOpen {
    /// Id of the `hook.run`, `hook.invoke.file` or `hook.mirror` request.
    pub call: u64,
    /// Index of the handler whose result comes next.
    pub handler: usize,
    /// The size of the file in bytes.
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

/// The content of an answer file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileAnswer {
    /// From [`FileOpened::token`].
    pub token: String,
    /// Like [`crate::plugin::hook::Patch::items`].
    pub items: Vec<Vec<Change>>,
    /// Like [`crate::plugin::hook::Patch::order`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Vec<Piece>>,
}

/// Runs `experimental.chat.messages.transform` over a list of messages that the process partly has.
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
    /// The session, under which the process keeps the list.
    pub session: String,
    /// The list that [`Piece::Kept`] refers to: the `revision` of an earlier call. Absent if the list is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<u64>,
    /// Number of this call's list; the process keeps it.
    pub revision: u64,
    /// Its size as JSON, in bytes; the process limits what it keeps.
    pub bytes: u64,
    /// The list; absent if it is in a file: `{"token", "pieces"}`.
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
    /// This many elements of the earlier list, from this index on.
    Kept(usize, usize),
    /// A new element.
    New {
        /// The element.
        value: Value,
    },
}
