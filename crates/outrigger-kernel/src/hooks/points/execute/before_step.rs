//! `execute.before_step`.

use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::ModelRef;
use serde::Serialize;

use crate::hooks::payload::{Empty, HookInput};
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
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
    /// Step of the turn, from 1.
    pub step: u32,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::ExecuteBeforeStep;
    type Output = Empty;
}
