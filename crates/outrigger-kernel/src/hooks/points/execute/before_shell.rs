//! `execute.before_shell`: OpenCode's `shell.env`.

use outrigger_protocol::Object;
use outrigger_protocol::id::{CallId, SessionId};
use serde::Serialize;
use serde_json::Value;

use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "execute.before_shell",
    hook: "shell.env",
    phase: Phase::Before,
    patch: &[Field::required("env", Kind::Object)],
    block: true,
    deadline: Deadline::Normal,
    failure: Failure::ThrowBlocks,
    input: "cwd, sessionID?, callID?",
    about: "Environment variables for a shell command, added to those it gets anyway, where the user granted the plugin that (`rewrite`).",
};

/// What handlers read.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Working directory.
    pub cwd: &'a str,
    /// Session; absent for a terminal of the user's.
    #[serde(rename = "sessionID", skip_serializing_if = "Option::is_none")]
    pub session_id: Option<&'a SessionId>,
    /// Call; absent for a terminal of the user's.
    #[serde(rename = "callID", skip_serializing_if = "Option::is_none")]
    pub call_id: Option<&'a CallId>,
}

/// What handlers may change.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Output {
    /// Variables to add.
    pub env: Object,
}

/// The variables that handlers left.
#[must_use]
pub fn read(output: &Value) -> Option<&Object> {
    output.get("env").and_then(Value::as_object)
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::ExecuteBeforeShell;
    type Output = Output;
}
