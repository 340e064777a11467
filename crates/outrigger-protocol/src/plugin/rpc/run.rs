//! Calls of plugin code (hooks, tools, events), and messages during them.

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
    /// Handlers that are adjacent in the order and in this process.
    pub handlers: Vec<HandlerRef>,
    /// What may be changed. A handler that violates it ends the run: the host reverts what is not allowed, and later handlers must
    /// see the result.
    #[serde(default)]
    pub open: Vec<OpenField>,
    /// One payload, or many for hooks that are called for a list (`tool.definition`).
    pub items: Vec<HookPayload>,
    /// Number of the chain, for plugins that trigger their own points: their [`crate::plugin::custom_points::PointCall`]s name it.
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
    /// Its result.
    pub outcome: HookOutcome,
    /// Its changes are in the file with this token ([`crate::plugin::transfer::FileOpened`]).
    pub file: Option<String>,
}

/// [`HookResult`] on the wire: the field that is present determines the kind of result.
#[derive(Deserialize)]
struct HookResultFrame {
    call: u64,
    handler: usize,
    ms: f64,
    /// Changes per item; omitted if there are none.
    #[serde(default)]
    items: Vec<Vec<Change>>,
    /// `hook.mirror` only: `messages` changed in length or order.
    #[serde(default)]
    order: Option<Vec<Piece>>,
    #[serde(default)]
    file: Option<String>,
    /// The handler threw.
    #[serde(default)]
    error: Option<String>,
    /// The handler refused: it threw an error called `HookBlock` (C2).
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
    /// Its handler.
    pub handler: HandlerRef,
    /// Tool.
    pub tool: String,
    /// Arguments as the model wrote them (validated, defaults not applied, as in OpenCode).
    pub args: Value,
    /// Plain keys of the tool context: sessionID, messageID, callID, agent, directory, worktree, extra, messages.
    pub context: Object,
    /// Like [`HookRun::chain`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<u64>,
}

/// A plugin tool asks a permission question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolAsk {
    /// Id of the `tool.run` request.
    pub call: u64,
    /// The subject.
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

/// A plugin tool reports progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolMetadata {
    /// Id of the `tool.run` request.
    pub call: u64,
    /// Its title.
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
    /// [`crate::conversation::event::CustomEvent::depth`] of each; empty if all are 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depths: Vec<u32>,
}

impl EventBatch {
    /// Creates a batch of these events.
    #[must_use]
    pub fn of(events: Vec<BusEvent>) -> Self {
        let depth = |event: &BusEvent| match &event.event {
            Event::Custom(own) => own.depth,
            _ => 0,
        };
        let depths = if events.iter().any(|event| depth(event) > 0) {
            events.iter().map(depth).collect()
        } else {
            Vec::new()
        };
        Self { events, depths }
    }
}

/// A notification-only hook has thrown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HookFailed {
    /// Its plugin.
    pub plugin: String,
    /// `event` or `dispose`.
    pub hook: String,
    /// The error, and the event.
    pub message: String,
    /// The session that the event was about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Its duration until then, in milliseconds.
    #[serde(default)]
    pub ms: f64,
}

/// Notification-only hooks have run, with the duration of each (A1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HookRan {
    /// By plugin, hook and session.
    pub calls: Vec<RanCalls>,
}

/// The calls of one hook of one plugin, about one session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RanCalls {
    /// The plugin.
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
