//! `tool.before_call`: OpenCode's `tool.execute.before`.

use outrigger_protocol::id::{CallId, SessionId};
use serde::Serialize;
use serde_json::Value;

use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "tool.before_call",
    hook: "tool.execute.before",
    phase: Phase::Before,
    patch: &[Field::required("args", Kind::Object)],
    block: true,
    deadline: Deadline::Normal,
    failure: Failure::ThrowBlocks,
    input: "tool, sessionID, callID",
    about: "A tool is about to run. `args` is validated again and passed to the tool. Without the `rewrite` grant the user must approve the changed call. Throwing refuses the call.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Name of the tool.
    pub tool: &'a str,
    /// Id of the session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
    /// Id of the call.
    #[serde(rename = "callID")]
    pub call_id: &'a CallId,
}

/// What handlers may change.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Output<'a> {
    /// The arguments.
    pub args: &'a Value,
}

impl<'a> HookInput for Input<'a> {
    const POINT: HookPoint = HookPoint::ToolBeforeCall;
    type Output = Output<'a>;
}
