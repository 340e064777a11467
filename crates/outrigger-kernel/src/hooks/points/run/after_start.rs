//! `run.after_start`.

use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "run.after_start",
    hook: "run.after_start",
    phase: Phase::Observe,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, messageID, agent, model",
    about: "The user's message is stored and its turn has begun.",
};
