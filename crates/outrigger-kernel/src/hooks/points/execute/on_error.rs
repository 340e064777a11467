//! `execute.on_error`.

use outrigger_protocol::message::NamedError;
use serde::Serialize;

use super::after_step;
use crate::hooks::payload::{Context, HookInput};
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "execute.on_error",
    hook: "execute.on_error",
    phase: Phase::Error,
    patch: &[Field::required("context", Kind::Array)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, model, messageID, finish?, error",
    about: "A step has ended with an error; its message holds it. Texts in context are logged, stored and published as `outrigger.error.context`.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// The step.
    #[serde(flatten)]
    pub step: after_step::Input<'a>,
    /// Its error.
    pub error: &'a NamedError,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::ExecuteOnError;
    type Output = Context;
}
