//! `tool.on_error`.

use outrigger_protocol::id::{CallId, SessionId};
use serde::Serialize;
use serde_json::Value;

use crate::hooks::payload::Context;
use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "tool.on_error",
    hook: "tool.on_error",
    phase: Phase::Error,
    patch: &[Field::required("context", Kind::Array)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "tool, sessionID, callID, args, code, message, began",
    about: "A tool call has failed, was refused or was stopped. Texts in context are read by the model after the message, which stays; began says whether the tool had begun. Nothing waits where the turn was stopped.",
};

/// What handlers read.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Tool.
    pub tool: &'a str,
    /// Session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
    /// Call.
    #[serde(rename = "callID")]
    pub call_id: &'a CallId,
    /// The arguments that it was made with.
    pub args: &'a Value,
    /// Code of the failure.
    pub code: &'a str,
    /// What the model reads of it.
    pub message: &'a str,
    /// The tool had begun.
    pub began: bool,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::ToolOnError;
    type Output = Context;
}
