//! `run.before_start`: OpenCode's `chat.message`.

use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// Its row of the table.
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
