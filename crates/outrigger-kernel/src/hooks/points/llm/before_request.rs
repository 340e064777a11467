//! `llm.before_request`.

use alloc::string::String;

use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::ModelRef;
use serde::Serialize;

use super::RequestInput;
use crate::hooks::payload::{Empty, HookInput};
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "llm.before_request",
    hook: "llm.before_request",
    phase: Phase::Before,
    patch: &[],
    block: true,
    // The one point that is a question of policy and nothing else, asked before each request: `fast` (C5). It is ours,
    // so no plugin of OpenCode is held to it.
    deadline: Deadline::Fast,
    failure: Failure::Open,
    input: "sessionID, agent, model, messageID, step",
    about: "The request is complete and about to be sent. A refusal is final: nothing repeats it.",
};

/// What handlers read.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub enum Input<'a> {
    /// Of a step of a turn.
    Step(&'a Step),
    /// Of a request beside a turn, for a title.
    Beside(RequestInput<'a>),
}

/// A step of a turn.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// Session.
    #[serde(rename = "sessionID")]
    pub session_id: SessionId,
    /// Agent.
    pub agent: String,
    /// Model.
    pub model: ModelRef,
    /// Number of the step, from 1.
    pub step: u32,
    /// The message that the answer goes into.
    #[serde(rename = "messageID")]
    pub message_id: Option<MessageId>,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::LlmBeforeRequest;
    type Output = Empty;
}
