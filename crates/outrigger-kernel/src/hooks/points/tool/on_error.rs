//! `tool.on_error`.

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
    about: "A tool call has failed, was refused or was stopped. Texts in context are read by the model behind the message, which stays; began says whether the tool had begun. Nothing waits where the turn was stopped.",
};
