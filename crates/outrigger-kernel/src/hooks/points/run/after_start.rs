//! `run.after_start`.

use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::ModelRef;
use serde::Serialize;

use crate::hooks::payload::{Empty, HookInput};
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "run.after_start",
    hook: "run.after_start",
    phase: Phase::Observe,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, messageID, agent, model",
    about: "The user's message is stored and its turn has begun.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Id of the session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
    /// Name of the agent.
    pub agent: &'a str,
    /// The model.
    pub model: &'a ModelRef,
    /// The user's message.
    #[serde(rename = "messageID")]
    pub message_id: &'a MessageId,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::RunAfterStart;
    type Output = Empty;
}
