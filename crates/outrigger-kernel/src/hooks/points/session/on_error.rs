//! `session.on_error`.

use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::NamedError;
use serde::Serialize;

use crate::hooks::payload::{Context, HookInput};
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "session.on_error",
    hook: "session.on_error",
    phase: Phase::Error,
    patch: &[Field::required("context", Kind::Array)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, error",
    about: "The session published an error. Texts in context are logged, stored and published as `outrigger.error.context`.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Id of the session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
    /// Error.
    pub error: &'a NamedError,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::SessionOnError;
    type Output = Context;
}
