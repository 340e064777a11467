//! `run.before_command`: OpenCode's `command.execute.before`.

use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// Its row of the table.
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
