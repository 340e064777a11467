//! `session.on_error`.

use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "session.on_error",
    hook: "session.on_error",
    phase: Phase::Error,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, error",
    about: "The session told an error.",
};
