//! `run.before_command`: OpenCode's `command.execute.before`.

use alloc::vec::Vec;

use outrigger_protocol::buffer::from_value;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::session::PartInput;
use serde::Serialize;
use serde_json::Value;

use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "run.before_command",
    hook: "command.execute.before",
    phase: Phase::Before,
    patch: &[Field::required("parts", Kind::Array)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "command, sessionID, arguments",
    about: "A slash command's template is expanded and about to become a message.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Name of the command.
    pub command: &'a str,
    /// Id of the session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
    /// Text after the name.
    pub arguments: &'a str,
}

/// What handlers may change.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Output<'a> {
    /// Parts of the message from the template.
    pub parts: &'a [PartInput],
}

/// Returns the parts that handlers left, if all of them are valid.
#[must_use]
pub fn read(output: &Value) -> Option<Vec<PartInput>> {
    let parts = output.get("parts")?.clone();
    from_value(parts).ok()
}

impl<'a> HookInput for Input<'a> {
    const POINT: HookPoint = HookPoint::RunBeforeCommand;
    type Output = Output<'a>;
}
