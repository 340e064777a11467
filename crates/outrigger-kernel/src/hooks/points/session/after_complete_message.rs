//! `session.after_complete_message`, which plugins bring as `message.completed`.

use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "session.after_complete_message",
    hook: "message.completed",
    phase: Phase::Observe,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, model, messageID, variant?",
    about: "An assistant message of a turn is stored, and every tool part of it has reached its final state; told once for each message, with message and parts as output (A4).",
};
