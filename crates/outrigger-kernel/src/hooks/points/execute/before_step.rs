//! `execute.before_step`.

use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "execute.before_step",
    hook: "execute.before_step",
    phase: Phase::Observe,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, model, step",
    about: "A step of the turn (one request and the calls that it leads to) has begun.",
};
