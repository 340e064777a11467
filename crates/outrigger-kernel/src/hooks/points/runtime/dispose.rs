//! `runtime.dispose`: OpenCode's `dispose`.

use outrigger_protocol::id::SessionId;
use serde::Serialize;

use crate::hooks::payload::{Empty, HookInput};
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "runtime.dispose",
    hook: "dispose",
    phase: Phase::Observe,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "",
    about: "The plugin's process is about to end.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Id of the session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::RuntimeDispose;
    type Output = Empty;
}
