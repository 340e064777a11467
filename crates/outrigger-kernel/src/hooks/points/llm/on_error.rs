//! `llm.on_error`.

use outrigger_protocol::message::NamedError;
use serde::Serialize;

use super::before_request::Step;
use crate::hooks::payload::Context;
use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "llm.on_error",
    hook: "llm.on_error",
    phase: Phase::Error,
    patch: &[Field::required("context", Kind::Array)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, model, messageID, step, error",
    about: "A request has failed for good. The texts in `context` follow its message, which cannot be changed, in the session and in the published error. If the turn was stopped, nothing waits for the handlers.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// The step.
    #[serde(flatten)]
    pub step: &'a Step,
    /// The error.
    pub error: &'a NamedError,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::LlmOnError;
    type Output = Context;
}
