//! `session.before_create`.

use outrigger_protocol::id::SessionId;
use serde::Serialize;

use crate::hooks::payload::{Empty, HookInput};
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "session.before_create",
    hook: "session.before_create",
    phase: Phase::Observe,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "parentID?, title?",
    about: "A session is about to be made.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Parent session.
    #[serde(rename = "parentID")]
    pub parent_id: Option<&'a SessionId>,
    /// Title of the session.
    pub title: Option<&'a str>,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::SessionBeforeCreate;
    type Output = Empty;
}
