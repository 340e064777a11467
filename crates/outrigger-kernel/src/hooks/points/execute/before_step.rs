//! `execute.before_step`.

use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::ModelRef;
use serde::Serialize;

use crate::hooks::payload::{Empty, HookInput};
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "execute.before_step",
    hook: "execute.before_step",
    phase: Phase::Observe,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, model, step",
    about: "A step of the turn (one request and the calls that it leads to) has begun.",
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
    /// Step of the turn, from 1.
    pub step: u32,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::ExecuteBeforeStep;
    type Output = Empty;
}
