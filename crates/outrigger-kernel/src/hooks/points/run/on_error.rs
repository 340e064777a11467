//! `run.on_error`.

use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "run.on_error",
    hook: "run.on_error",
    phase: Phase::Error,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, error",
    about: "A turn has ended with an error, which is stored and told by then.",
};
