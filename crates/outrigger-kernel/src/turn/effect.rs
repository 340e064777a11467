//! What a step of the turn asks for.

use alloc::string::String;

use outrigger_protocol::event::Event;
use outrigger_protocol::id::MessageId;
use outrigger_protocol::tool::ToolCall;
use outrigger_protocol::turn::{EffectId, HookPayload, SessionPatch, TurnOutcome};
use serde::{Deserialize, Serialize};

use crate::hooks::HookPoint;

/// Something that must happen in the world. The agent carries it out; only its digest is stored, so the names and the order of
/// its keys must stay as they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Effect {
    /// Store the event, then tell everyone.
    Publish {
        /// What.
        event: Event,
    },
    /// Change the session record, store it, tell everyone.
    PatchSession {
        /// What.
        patch: SessionPatch,
    },
    /// Run the chain of a hook point.
    Hooks {
        /// Number.
        effect: EffectId,
        /// Point; written as our name.
        point: HookPoint,
        /// Input and output where the machine knows them; else the agent builds them from what it holds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payload: Option<HookPayload>,
    },
    /// Work out which tools the model is offered, with the `tool.definition` hooks.
    PrepareTools {
        /// Number.
        effect: EffectId,
        /// Step, from 1.
        step: u32,
    },
    /// Ask the model.
    CallModel {
        /// Number.
        effect: EffectId,
        /// Step, from 1.
        step: u32,
        /// The message that the answer goes into.
        message_id: MessageId,
    },
    /// Run a tool.
    RunTool {
        /// Number.
        effect: EffectId,
        /// The call.
        call: ToolCall,
    },
    /// Make a tree of the project's files.
    TrackFiles {
        /// Number.
        effect: EffectId,
        /// The tree before the step, after a step: also say what changed since.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<String>,
        /// The first tree of the turn, to compare all of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first: Option<String>,
    },
    /// Ask whether a call may be made that repeats itself (permission `doom_loop`).
    AskLoop {
        /// Number.
        effect: EffectId,
        /// The call.
        call: ToolCall,
    },
    /// Choose what a compaction summarises and what stays.
    PrepareCompaction {
        /// Number.
        effect: EffectId,
        /// The user message that stands for the compaction; the history before it is summarised.
        message_id: MessageId,
        /// The history did not fit into a request.
        overflow: bool,
    },
    /// Ask the small model for a title, beside the turn.
    MakeTitle {
        /// The message that it is made from.
        message_id: MessageId,
    },
    /// Stop every effect that runs; each still reports how it ended.
    Abort,
    /// The turn is over.
    Finish {
        /// How.
        outcome: TurnOutcome,
    },
}
