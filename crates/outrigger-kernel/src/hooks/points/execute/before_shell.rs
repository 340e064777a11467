//! `execute.before_shell`: OpenCode's `shell.env`.

use outrigger_protocol::Object;
use outrigger_protocol::id::{CallId, SessionId};
use serde::Serialize;
use serde_json::Value;

use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "execute.before_shell",
    hook: "shell.env",
    phase: Phase::Before,
    patch: &[Field::required("env", Kind::Object)],
    block: true,
    deadline: Deadline::Normal,
    failure: Failure::ThrowBlocks,
    input: "cwd, sessionID?, callID?",
    about: "Environment variables for a shell command, added to its own if the plugin has the `rewrite` grant.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Working directory.
    pub cwd: &'a str,
    /// Id of the session; absent for a terminal of the user.
    #[serde(rename = "sessionID", skip_serializing_if = "Option::is_none")]
    pub session_id: Option<&'a SessionId>,
    /// Id of the call; absent for a terminal of the user.
    #[serde(rename = "callID", skip_serializing_if = "Option::is_none")]
    pub call_id: Option<&'a CallId>,
}

/// What handlers may change.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Output {
    /// Variables to add.
    pub env: Object,
}

/// Returns the variables set by the handlers.
#[must_use]
pub fn read(output: &Value) -> Option<&Object> {
    output.get("env").and_then(Value::as_object)
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::ExecuteBeforeShell;
    type Output = Output;
}
