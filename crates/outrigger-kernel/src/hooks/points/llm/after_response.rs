//! `llm.after_response`.

use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::ModelRef;
use outrigger_protocol::model::Usage;
use serde::Serialize;

use crate::hooks::payload::{Empty, HookInput};
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "llm.after_response",
    hook: "llm.after_response",
    phase: Phase::Observe,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, model, reason, usage",
    about: "A response of the model is complete.",
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
    /// Why it ended.
    pub reason: &'a str,
    /// Token usage.
    pub usage: &'a Usage,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::LlmAfterResponse;
    type Output = Empty;
}
