//! `execute.on_error`.

use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "execute.on_error",
    hook: "execute.on_error",
    phase: Phase::Error,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, model, messageID, finish?, error",
    about: "A step has ended with an error; its message holds it.",
};
