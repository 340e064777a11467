//! `execute.after_step`.

use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "execute.after_step",
    hook: "execute.after_step",
    phase: Phase::Observe,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, model, messageID, finish?",
    about: "A step is over; its message is stored.",
};
