//! `session.before_create`.

use outrigger_protocol::id::SessionId;
use serde::Serialize;

use crate::hooks::payload::{Empty, HookInput};
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
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

/// What handlers read.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// The session that it belongs to.
    #[serde(rename = "parentID")]
    pub parent_id: Option<&'a SessionId>,
    /// Its title.
    pub title: Option<&'a str>,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::SessionBeforeCreate;
    type Output = Empty;
}
