//! Frames between the host and a plugin process: a 4-byte big-endian length, then JSON-RPC 2.0.
//!
//! The channel is a socket pair that the process inherits as descriptor 3. Both sides send requests, and any number may be open.
//! `docs/plugin-protocol.md` describes the protocol; a test keeps the two consistent.

pub(crate) mod handler;
mod load;
mod run;
mod sdk;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use handler::{HandlerRef, OpenField};
pub use load::{
    Facade, Hello, Initialize, Initialized, Instance, LoadedPlugin, PluginEntry, PluginTool,
    Problem, Sources, Stage,
};
pub use run::{
    Enter, EventBatch, HookFailed, HookRan, HookResult, HookRun, RanCalls, ToolAsk, ToolMetadata,
    ToolRun,
};
pub use sdk::{SdkChunk, SdkCredit, SdkRequest, SdkResponse};

/// Version of the protocol. A process with another major version is refused with a clear error.
pub const PROTOCOL_VERSION: &str = "1.0";

/// Descriptor number of the process's channel.
pub const CHANNEL_FD: i32 = 3;

/// Largest frame that either side accepts, in bytes.
pub const MAX_FRAME: usize = 64 * 1024 * 1024;

/// Error code of a `hook.mirror` whose earlier list the process has dropped or never had: it must be sent whole.
pub const NEED_WHOLE: i64 = -32002;

/// Names in [`Hello::features`].
pub mod feature {
    /// The process supports `hook.invoke.file` and requests files with `file.open`.
    pub const FILE: &str = "hook.file";
    /// The process supports `hook.mirror`.
    pub const MIRROR: &str = "hook.mirror";
}

/// A JSON-RPC message: request (id and method), notification (method only) or response (id only).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Always `2.0`.
    pub jsonrpc: String,
    /// Present on requests and responses. Each side counts its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// Present on requests and notifications.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Value>,
    /// Answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RpcError>,
}

/// A failed request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RpcError {
    /// JSON-RPC code; -32000 for a plugin's own error, -32800 for a cancelled request.
    pub code: i64,
    /// What happened.
    pub message: String,
    /// Further data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// Method names, host to plugin process.
pub mod host {
    /// Request [`super::Initialize`], answer [`super::Initialized`].
    pub const INITIALIZE: &str = "initialize";
    /// Request [`super::HookRun`], answer `{}` after one [`super::process::HOOK_RESULT`] per handler.
    pub const HOOK_RUN: &str = "hook.run";
    /// Request [`crate::plugin::transfer::HookInvokeFile`], answered as [`HOOK_RUN`].
    pub const HOOK_INVOKE_FILE: &str = "hook.invoke.file";
    /// Request [`crate::plugin::transfer::HookMirror`], answered as [`HOOK_RUN`]; error [`super::NEED_WHOLE`] when the process
    /// does not have the list that the call counts in.
    pub const HOOK_MIRROR: &str = "hook.mirror";
    /// Request [`super::ToolRun`], answer [`crate::tools::tool::ToolOutput`].
    pub const TOOL_RUN: &str = "tool.run";
    /// Request [`crate::plugin::login::AuthLoad`], answer [`crate::plugin::login::AuthLoaded`].
    pub const AUTH_LOAD: &str = "auth.load";
    /// Request [`crate::plugin::login::AuthAsk`], answer [`crate::plugin::login::AuthAsked`].
    pub const AUTH_PROMPT: &str = "auth.prompt";
    /// Request [`crate::plugin::login::AuthBegin`], answer [`crate::plugin::login::AuthBegun`].
    pub const AUTH_AUTHORIZE: &str = "auth.authorize";
    /// Request [`crate::plugin::login::AuthFinish`], answer [`crate::plugin::login::AuthFinished`].
    pub const AUTH_CALLBACK: &str = "auth.callback";
    /// Request [`crate::plugin::login::AuthFetch`], answer [`crate::plugin::login::AuthHead`]; the body follows in
    /// [`super::process::AUTH_CHUNK`].
    pub const AUTH_FETCH: &str = "auth.fetch";
    /// Notification [`crate::plugin::login::AuthCredit`]: allows this many more bytes of a body to be sent.
    pub const AUTH_CREDIT: &str = "auth.credit";
    /// Request [`crate::plugin::login::ProviderAsk`], answer [`crate::plugin::login::ProviderTold`].
    pub const PROVIDER_MODELS: &str = "provider.models";
    /// Request [`crate::plugin::custom_points::ProviderStream`], answer [`crate::plugin::login::AuthHead`]; the pieces follow as the body of an
    /// [`AUTH_FETCH`] does, one [`crate::plugin::custom_points::ProviderPiece`] in each `data:` line of a stream of server-sent events.
    pub const PROVIDER_STREAM: &str = "provider.stream";
    /// Notification [`super::SdkChunk`]: a piece of a streamed answer to an `sdk.request`.
    pub const SDK_CHUNK: &str = "sdk.chunk";
    /// Notification [`super::EventBatch`].
    pub const EVENT_BATCH: &str = "event.batch";
    /// Request `{}`: run `dispose` hooks, answer `{}`, then end.
    pub const SHUTDOWN: &str = "shutdown";
    /// Checks whether the process handles requests at all: answered at once, whatever plugins wait for.
    pub const PING: &str = "ping";
    /// Notification `{id}`: the host no longer wants the answer.
    pub const CANCEL: &str = "$/cancel";
}

/// Method names, plugin process to host.
pub mod process {
    /// Notification [`super::Hello`]: the first frame of all.
    pub const HELLO: &str = "hello";
    /// Notification [`super::Stage`].
    pub const STAGE: &str = "plugin.stage";
    /// Notification [`super::Enter`]: written before a plugin's code is entered, so that a hang is blamed on the right one.
    pub const ENTER: &str = "plugin.enter";
    /// Notification `{}`: the code entered for an `event.batch` has returned (nothing else answers a batch).
    pub const LEAVE: &str = "plugin.leave";
    /// Notification `{}`: the event loop has turned, so all code entered before has returned; a spin from now on is not
    /// in the synchronous part of any of it.
    pub const YIELD: &str = "plugin.yield";
    /// Notification [`super::HookFailed`].
    pub const FAILED: &str = "plugin.failed";
    /// Notification [`super::HookRan`].
    pub const RAN: &str = "plugin.ran";
    /// Notification [`super::HookResult`].
    pub const HOOK_RESULT: &str = "hook.result";
    /// Request [`crate::plugin::transfer::FileOpen`], answer [`crate::plugin::transfer::FileOpened`].
    pub const FILE_OPEN: &str = "file.open";
    /// Request [`super::SdkRequest`], answer [`super::SdkResponse`].
    pub const SDK_REQUEST: &str = "sdk.request";
    /// Notification [`super::SdkCredit`]: so many more bytes of a streamed answer may be sent.
    pub const SDK_CREDIT: &str = "sdk.credit";
    /// Request [`super::ToolAsk`], answer `{}` or an error when refused.
    pub const TOOL_ASK: &str = "tool.ask";
    /// Notification [`super::ToolMetadata`].
    pub const TOOL_METADATA: &str = "tool.metadata";
    /// Request [`crate::plugin::login::AuthGet`], answer a [`crate::plugin::auth::Credential`] or null.
    pub const AUTH_GET: &str = "auth.get";
    /// Notification [`crate::plugin::login::AuthChunk`].
    pub const AUTH_CHUNK: &str = "auth.chunk";
    /// Request [`crate::plugin::custom_points::PointCall`], answer [`crate::plugin::custom_points::PointCalled`], or an error whose `data.code` says why.
    pub const POINT_CALL: &str = "point.call";
    /// Request [`crate::plugin::custom_points::EventEmit`], answer `{}`, or an error as for [`POINT_CALL`].
    pub const EVENT_EMIT: &str = "event.emit";
    /// Notification [`super::Log`].
    pub const LOG: &str = "log";
}

/// A log line of the host script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    /// `debug`, `info`, `warn`, `error`.
    pub level: String,
    /// What happened.
    pub message: String,
    /// The plugin, if the script knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
}
