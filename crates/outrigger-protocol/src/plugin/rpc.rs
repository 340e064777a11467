//! Frames between the host and a plugin process: a 4-byte big-endian length, then JSON-RPC 2.0.
//!
//! The channel is a socket pair that the process inherits as descriptor 3. Requests go both ways, any number may be
//! open. `docs/plugin-protocol.md` describes the conversation; a test keeps the two in step.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Object;
use crate::conversation::event::{BusEvent, Event};
use crate::id::SessionId;
use crate::plugin::hook::{Block, Change, HookFailure, HookOutcome, Patch};
use crate::plugin::transfer::Piece;
use crate::records::turn::HookPayload;

/// Version of the protocol. A process that speaks another major version is refused by name.
pub const PROTOCOL_VERSION: &str = "1.0";

/// Descriptor number that the process finds its channel at.
pub const CHANNEL_FD: i32 = 3;

/// Largest frame that either side accepts, in bytes.
pub const MAX_FRAME: usize = 64 * 1024 * 1024;

/// Error code of a `hook.mirror` whose earlier list the process has dropped or never had: it is to be given whole.
pub const NEED_WHOLE: i64 = -32002;

/// Names in [`Hello::features`].
pub mod feature {
    /// The process takes `hook.invoke.file` and asks for files with `file.open`.
    pub const FILE: &str = "hook.file";
    /// The process takes `hook.mirror`.
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
    /// Anything else.
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
    /// Notification [`crate::plugin::login::AuthCredit`]: so many more bytes of a body may be sent.
    pub const AUTH_CREDIT: &str = "auth.credit";
    /// Request [`crate::plugin::login::ProviderAsk`], answer [`crate::plugin::login::ProviderTold`].
    pub const PROVIDER_MODELS: &str = "provider.models";
    /// Request [`crate::plugin::own::ProviderStream`], answer [`crate::plugin::login::AuthHead`]; the pieces follow as the body of an
    /// [`AUTH_FETCH`] does, one [`crate::plugin::own::ProviderPiece`] in each `data:` line of a stream of server-sent events.
    pub const PROVIDER_STREAM: &str = "provider.stream";
    /// Notification [`super::SdkChunk`]: a piece of a streamed answer to an `sdk.request`.
    pub const SDK_CHUNK: &str = "sdk.chunk";
    /// Notification [`super::EventBatch`].
    pub const EVENT_BATCH: &str = "event.batch";
    /// Request `{}`: run `dispose` hooks, answer `{}`, then end.
    pub const SHUTDOWN: &str = "shutdown";
    /// Whether the process takes requests at all: answered at once, whatever plugins wait for.
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
    /// Notification `{}`: the event loop has turned, so all code entered before has let go of the thread; a spin from now
    /// on is not in the synchronous part of any of it.
    pub const YIELD: &str = "plugin.yield";
    /// Notification [`super::HookFailed`].
    pub const FAILED: &str = "plugin.failed";
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
    /// Request [`crate::plugin::own::PointCall`], answer [`crate::plugin::own::PointCalled`], or an error whose `data.code` says why.
    pub const POINT_CALL: &str = "point.call";
    /// Request [`crate::plugin::own::EventEmit`], answer `{}`, or an error as for [`POINT_CALL`].
    pub const EVENT_EMIT: &str = "event.emit";
    /// Notification [`super::Log`].
    pub const LOG: &str = "log";
}

/// First frame of a plugin process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL_VERSION`] of the host script.
    pub protocol: String,
    /// What it can do besides; unknown names are ignored.
    #[serde(default)]
    pub features: Vec<String>,
    /// `bun` or `node`.
    pub runtime: String,
    /// Version of the runtime.
    pub version: String,
}

/// Loads plugins into the process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Initialize {
    /// Project folder; the process changes into it.
    pub directory: String,
    /// Project root.
    pub worktree: String,
    /// `project` of the plugin input.
    pub project: Value,
    /// `serverUrl` of the plugin input.
    pub server_url: String,
    /// Entry file of `@opencode-ai/sdk`, imported when a plugin first touches `client`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sdk: Option<String>,
    /// Folder whose `node_modules` serves plugins that have no `@opencode-ai/plugin` or zod of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modules: Option<String>,
    /// Answers of hooks over this size, in bytes, are to go by file ([`crate::plugin::transfer::FileOpen`]); absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_over: Option<u64>,
    /// The proxy through which connections to other hosts go, with the token of this process; absent: they go by
    /// themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Plugins in load order.
    pub plugins: Vec<PluginEntry>,
    /// Sources that are run as they were hashed.
    #[serde(default, skip_serializing_if = "Sources::is_empty")]
    pub sources: Sources,
}

/// Sources that are run as they were hashed, or not at all. Paths are without links.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    /// SHA-256 in hexadecimal digits, by path.
    pub hashes: BTreeMap<String, String>,
    /// Folders of packages. All sources in them are in `hashes`: another one is not run.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub packages: BTreeSet<String>,
}

impl Sources {
    /// Whether nothing is checked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Adds those of another plugin of the process.
    pub fn extend(&mut self, more: Self) {
        self.hashes.extend(more.hashes);
        self.packages.extend(more.packages);
    }
}

/// One plugin to load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PluginEntry {
    /// Name in lists and logs.
    pub id: String,
    /// `file://` URL of the module.
    pub entry: String,
    /// It comes from a path, so a module object must name itself.
    pub from_path: bool,
    /// Second argument of the plugin function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Value>,
    /// It is a tool file (`{tool,tools}/*.{js,ts}`, B5): its default export is the tool of this name, each other export
    /// the tool `NAME_EXPORT`, as in the reference. Nothing in it is called before a tool is run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<String>,
    /// Another plugin hosts it: its function gets what stands here, and none of the plugin input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facade: Option<Facade>,
}

/// What a hosted plugin's function gets (C8), besides the folders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facade {
    /// Its host.
    pub host: String,
    /// What it is called below that one.
    pub id: String,
    /// It may use some routes of the client.
    pub client: bool,
}

/// What became of the plugins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Initialized {
    /// One for each entry, in order.
    pub plugins: Vec<LoadedPlugin>,
}

/// One plugin after loading.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadedPlugin {
    /// Name from [`PluginEntry::id`].
    pub id: String,
    /// One for each plugin function of the module that answered with hooks.
    pub instances: Vec<Instance>,
    /// What went wrong on the way, with the stage (`import`, `export`, `server`).
    #[serde(default)]
    pub problems: Vec<Problem>,
    /// Milliseconds for import and start.
    pub ms: f64,
}

/// What went wrong while a plugin loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// `import`, `export`, `server`, `hooks`, `tool`; `note` for what is worth knowing and nothing wrong.
    pub stage: String,
    /// What happened.
    pub message: String,
    /// It comes of running under Node: under Bun the plugin may work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_bun: bool,
}

/// The hooks object that one plugin function returned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Instance {
    /// Export that it came from.
    pub export: String,
    /// Names of its hook functions.
    pub hooks: Vec<String>,
    /// Its tools.
    #[serde(default)]
    pub tools: Vec<PluginTool>,
    /// `auth` or `provider` objects that it brought (names only).
    #[serde(default)]
    pub extras: Vec<String>,
    /// Its `auth` object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<crate::plugin::login::AuthHook>,
    /// The provider whose models its `provider` object answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The provider that its `provider` object speaks for with a protocol of its own (`stream`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<crate::plugin::own::ProviderDecl>,
}

/// A tool of a plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PluginTool {
    /// Name.
    pub name: String,
    /// For the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub schema: Value,
    /// What it declares beside that, under `outrigger`: see [`crate::tools::descriptor::Declared`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declares: Option<Value>,
}

/// Runs one hook of several handlers, in order, over one or more items.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HookRun {
    /// OpenCode's name of the hook.
    pub hook: String,
    /// Handlers that live next to each other in the order and in this process.
    pub handlers: Vec<HandlerRef>,
    /// What may be changed. A handler that goes beyond it ends the run: the host takes back what is not allowed, and
    /// the ones behind it must see what is left.
    #[serde(default)]
    pub open: Vec<OpenField>,
    /// One payload, or many for hooks that are asked about a list (`tool.definition`).
    pub items: Vec<HookPayload>,
    /// Number of the chain, for plugins that reach points of their own: their [`crate::plugin::own::PointCall`]s name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<u64>,
}

/// A field of `output` that handlers may change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenField {
    /// Its name; `*` for any.
    pub key: String,
    /// What it must stay: `any`, `string`, `number`, `boolean`, `array` or `object`.
    pub kind: String,
    /// It may not be deleted or null.
    pub required: bool,
}

/// A hooks object in a process.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HandlerRef {
    /// Plugin.
    pub plugin: String,
    /// Index into [`LoadedPlugin::instances`].
    pub instance: usize,
}

/// One handler of a [`HookRun`] has ended.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "HookResultFrame")]
pub struct HookResult {
    /// Id of the `hook.run` request.
    pub call: u64,
    /// Index into [`HookRun::handlers`].
    pub handler: usize,
    /// Milliseconds in the plugin's code.
    pub ms: f64,
    /// What it answered, or that it threw.
    pub outcome: HookOutcome,
    /// What it changed is in the file with this token ([`crate::plugin::transfer::FileOpened`]).
    pub file: Option<String>,
}

/// [`HookResult`] as it is sent: the kind of outcome is told by the field that is there.
#[derive(Deserialize)]
struct HookResultFrame {
    call: u64,
    handler: usize,
    ms: f64,
    /// Per item what changed; left out when nothing did.
    #[serde(default)]
    items: Vec<Vec<Change>>,
    /// `hook.mirror` only: `messages` got another length or order.
    #[serde(default)]
    order: Option<Vec<Piece>>,
    #[serde(default)]
    file: Option<String>,
    /// It threw.
    #[serde(default)]
    error: Option<String>,
    /// It refused: it threw an error called `HookBlock` (C2).
    #[serde(default)]
    block: Option<Block>,
}

impl From<HookResultFrame> for HookResult {
    fn from(frame: HookResultFrame) -> Self {
        let HookResultFrame { items, order, .. } = frame;
        let outcome = match (frame.block, frame.error) {
            (Some(block), _) => HookOutcome::Block(block),
            (None, Some(message)) => HookFailure::Threw { message }.into(),
            (None, None) if items.is_empty() && order.is_none() => HookOutcome::Continue,
            (None, None) => HookOutcome::Patch(Patch { items, order }),
        };
        Self {
            call: frame.call,
            handler: frame.handler,
            ms: frame.ms,
            outcome,
            file: frame.file,
        }
    }
}

/// A plugin's code is about to be entered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enter {
    /// Plugin.
    pub plugin: String,
    /// Hook, `tool:NAME`, `import` or `server`.
    pub what: String,
    /// Id of the request, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u64>,
}

/// How far a plugin's loading is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// Plugin.
    pub plugin: String,
    /// `importing`, `starting`, `ready`, `failed`.
    pub stage: String,
}

/// Runs a plugin's tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolRun {
    /// Who brings it.
    pub handler: HandlerRef,
    /// Tool.
    pub tool: String,
    /// Arguments as the model wrote them (validated, defaults not applied, as in the reference).
    pub args: Value,
    /// Plain keys of the tool context: sessionID, messageID, callID, agent, directory, worktree, extra, messages.
    pub context: Object,
    /// As [`HookRun::chain`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<u64>,
}

/// Bus events in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventBatch {
    /// Events.
    pub events: Vec<BusEvent>,
    /// Of each, [`crate::conversation::event::CustomEvent::depth`]; empty where all are 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depths: Vec<u32>,
}

impl EventBatch {
    /// A batch of these.
    #[must_use]
    pub fn of(events: Vec<BusEvent>) -> Self {
        let depth = |event: &BusEvent| match &event.event {
            Event::Custom(own) => own.depth,
            _ => 0,
        };
        let depths = match events.iter().any(|event| depth(event) > 0) {
            true => events.iter().map(depth).collect(),
            false => Vec::new(),
        };
        Self { events, depths }
    }
}

/// A hook that nobody waits for has thrown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookFailed {
    /// Whose.
    pub plugin: String,
    /// `event` or `dispose`.
    pub hook: String,
    /// What it threw, and on what.
    pub message: String,
    /// The session that the event was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

/// A request of the SDK client, or of `fetch` to the host's own origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SdkRequest {
    /// Whose client it is, where that is known. Plugins that share a process can claim each other's names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// HTTP method.
    pub method: String,
    /// Path with query.
    pub path: String,
    /// Headers.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Body as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// The answer to a [`SdkRequest`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SdkResponse {
    /// HTTP status.
    pub status: u16,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// Body as text; empty where it is streamed.
    pub body: String,
    /// The body follows in [`host::SDK_CHUNK`], for as long as there is one and it is wanted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stream: bool,
}

/// A piece of a streamed answer, or its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SdkChunk {
    /// Id of the `sdk.request`.
    pub request: u64,
    /// Text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Nothing follows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub end: bool,
    /// Why it ended before it was complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl SdkChunk {
    /// An answer that ends before it is complete.
    #[must_use]
    pub fn broken(request: u64, error: String) -> Self {
        Self {
            request,
            data: None,
            end: true,
            error: Some(error),
        }
    }
}

/// How much of a streamed answer may be sent, beside what was allowed before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SdkCredit {
    /// Id of the `sdk.request`.
    pub request: u64,
    /// Bytes of text.
    pub bytes: u64,
}

/// A plugin tool asks for a permission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolAsk {
    /// Id of the `tool.run` request.
    pub call: u64,
    /// What it is about.
    pub permission: String,
    /// Commands, paths or URLs.
    #[serde(default)]
    pub patterns: Vec<String>,
    /// Patterns that "always" would allow.
    #[serde(default)]
    pub always: Vec<String>,
    /// For display.
    #[serde(default)]
    pub metadata: Value,
}

/// A plugin tool reports while it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolMetadata {
    /// Id of the `tool.run` request.
    pub call: u64,
    /// What it says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Structured.
    #[serde(default)]
    pub metadata: Value,
}

/// A log line of the host script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    /// `debug`, `info`, `warn`, `error`.
    pub level: String,
    /// What happened.
    pub message: String,
}
