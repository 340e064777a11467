//! `run.before_start`: OpenCode's `chat.message`.

use outrigger_protocol::message::{MessageInfo, Part};
use serde::Serialize;
use serde_json::Value;

use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "run.before_start",
    hook: "chat.message",
    phase: Phase::Before,
    patch: &[
        Field::required("message", Kind::Object),
        Field::required("parts", Kind::Array),
    ],
    block: true,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent?, model?, messageID?, variant?",
    about: "A user message and its parts exist and are about to be stored; the model has not been called.",
};

/// Input of the handlers: the client's request, as in the turn's first input.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(transparent)]
pub struct Input<'a>(pub &'a Value);

/// What handlers may change.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Output<'a> {
    /// The user message.
    pub message: &'a MessageInfo,
    /// Parts of the message.
    pub parts: &'a [Part],
}

impl<'a> HookInput for Input<'a> {
    const POINT: HookPoint = HookPoint::RunBeforeStart;
    type Output = Output<'a>;
}
