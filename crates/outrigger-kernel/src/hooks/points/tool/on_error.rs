//! `tool.on_error`.

use outrigger_protocol::id::{CallId, SessionId};
use serde::Serialize;
use serde_json::Value;

use crate::hooks::payload::Context;
use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "tool.on_error",
    hook: "tool.on_error",
    phase: Phase::Error,
    patch: &[Field::required("context", Kind::Array)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "tool, sessionID, callID, args, code, message, began",
    about: "A tool call has failed, was refused or was stopped. The model reads the texts in `context` after the error message, which cannot be changed; `began` says whether the tool had started. If the turn was stopped, nothing waits for the handlers.",
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
    /// Arguments of the call.
    pub args: &'a Value,
    /// Error code.
    pub code: &'a str,
    /// Error text for the model.
    pub message: &'a str,
    /// The tool had started.
    pub began: bool,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::ToolOnError;
    type Output = Context;
}
