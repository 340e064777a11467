//! `execute.after_step`.

use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::ModelRef;
use serde::Serialize;

use crate::hooks::payload::{Empty, HookInput};
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "execute.after_step",
    hook: "execute.after_step",
    phase: Phase::Observe,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, model, messageID, finish?",
    about: "A step is over; its message is stored.",
};

/// What handlers read.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
    /// Agent.
    pub agent: &'a str,
    /// Model.
    pub model: &'a ModelRef,
    /// The step's message.
    #[serde(rename = "messageID")]
    pub message_id: &'a MessageId,
    /// Why it ended, where the model said so.
    pub finish: Option<&'a str>,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::ExecuteAfterStep;
    type Output = Empty;
}
