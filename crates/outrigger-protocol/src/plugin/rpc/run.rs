//! Calls of plugins' code (hooks, tools, events), and what is said while they last.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::handler::{HandlerRef, OpenField};
use crate::Object;
use crate::conversation::event::{BusEvent, Event};
use crate::id::{PluginId, SessionId};
use crate::plugin::hook::{Block, Change, HookFailure, HookOutcome, Patch};
use crate::plugin::transfer::Piece;
use crate::records::turn::HookPayload;

/// Runs one hook of several handlers, in order, over one or more items.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HookRun {
    /// OpenCode's name of the hook.
    pub hook: String,
    /// Handlers that live next to each other in the order and in this process.
    pub handlers: Vec<HandlerRef>,
    /// What may be changed. A handler that goes beyond it ends the run: the host takes back what is not allowed, and
    /// the ones after it must see what is left.
    #[serde(default)]
    pub open: Vec<OpenField>,
    /// One payload, or many for hooks that are asked about a list (`tool.definition`).
    pub items: Vec<HookPayload>,
    /// Number of the chain, for plugins that reach points of their own: their [`crate::plugin::custom_points::PointCall`]s name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<u64>,
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

/// [`HookResult`] as it is sent: the field that is present gives the kind of outcome.
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

/// Runs a plugin's tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolRun {
    /// Who brings it.
    pub handler: HandlerRef,
    /// Tool.
    pub tool: String,
    /// Arguments as the model wrote them (validated, defaults not applied, as in OpenCode).
    pub args: Value,
    /// Plain keys of the tool context: sessionID, messageID, callID, agent, directory, worktree, extra, messages.
    pub context: Object,
    /// As [`HookRun::chain`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<u64>,
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// How long it took until then, in milliseconds.
    #[serde(default)]
    pub ms: f64,
}

/// Hooks that nobody waits for have run, and how long each took (A1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HookRan {
    /// By plugin, hook and session.
    pub calls: Vec<RanCalls>,
}

/// The calls of one hook of one plugin, about one session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RanCalls {
    /// Whose.
    pub plugin: PluginId,
    /// `event` or `dispose`.
    pub hook: String,
    /// The session that the events were about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The time of each call, in milliseconds.
    pub ms: Vec<f64>,
    /// The largest payload, in bytes.
    #[serde(default)]
    pub bytes: u64,
}
