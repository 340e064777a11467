//! `execute.before_shell`: OpenCode's `shell.env`.

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
