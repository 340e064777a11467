//! Effects: what a step of the turn requests.

use alloc::string::String;

use outrigger_protocol::event::Event;
use outrigger_protocol::id::MessageId;
use outrigger_protocol::tool::ToolCall;
use outrigger_protocol::turn::{EffectId, HookPayload, SessionPatch, TurnOutcome};
use serde::{Deserialize, Serialize};

use crate::hooks::HookPoint;

/// An action in the world. The agent carries it out; only its digest is stored, so the names and the order of its keys must
/// not change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Effect {
    /// Store the event, then notify everyone.
    Publish {
        /// The event.
        event: Event,
    },
    /// Change the session record, store it, notify everyone.
    PatchSession {
        /// The change.
        patch: SessionPatch,
    },
    /// Run the chain of a hook point.
    Hooks {
        /// Id of the effect.
        effect: EffectId,
        /// Point; serialised as its name.
        point: HookPoint,
        /// Input and output if the machine knows them; otherwise the agent builds them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payload: Option<HookPayload>,
    },
    /// Determine the tools to offer the model, with the `tool.definition` hooks.
    PrepareTools {
        /// Id of the effect.
        effect: EffectId,
        /// Number of the step, from 1.
        step: u32,
    },
    /// Send a request to the model.
    CallModel {
        /// Id of the effect.
        effect: EffectId,
        /// Number of the step, from 1.
        step: u32,
        /// Id of the message for the answer.
        message_id: MessageId,
    },
    /// Run a tool.
    RunTool {
        /// Id of the effect.
        effect: EffectId,
        /// The call.
        call: ToolCall,
    },
    /// Create a snapshot of the project's files.
    TrackFiles {
        /// Id of the effect.
        effect: EffectId,
        /// Snapshot before the step; if set (after a step), also report the changes since.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<String>,
        /// First snapshot of the turn, to report the changes of the whole turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first: Option<String>,
    },
    /// Ask whether a repeated call may be made (permission `doom_loop`).
    AskLoop {
        /// Id of the effect.
        effect: EffectId,
        /// The call.
        call: ToolCall,
    },
    /// Choose what a compaction summarises and what stays.
    PrepareCompaction {
        /// Id of the effect.
        effect: EffectId,
        /// The user message that stands for the compaction; the history before it is summarised.
        message_id: MessageId,
        /// The history did not fit into a request.
        overflow: bool,
    },
    /// Ask the small model for a title, in the background.
    MakeTitle {
        /// The message that it is made from.
        message_id: MessageId,
    },
    /// Stop every running effect; each still reports how it ended.
    Abort,
    /// The turn is over.
    Finish {
        /// The outcome.
        outcome: TurnOutcome,
    },
}
