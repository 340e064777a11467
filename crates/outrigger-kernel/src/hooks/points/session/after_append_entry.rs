//! `session.after_append_entry`.

use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "session.after_append_entry",
    hook: "session.after_append_entry",
    phase: Phase::Observe,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, messageID, role, agent",
    about: "A message is stored, with message and parts as output: one of the user's with its parts, the model's once it is complete; copies of a fork and commands that the user ran too. Each is told once.",
};
