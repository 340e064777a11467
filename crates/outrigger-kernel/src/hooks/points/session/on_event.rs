//! `session.on_event`: OpenCode's `event`. It has no payload here: events go to processes in batches of their own.

use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "session.on_event",
    hook: "event",
    phase: Phase::Observe,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "event",
    about: "Every bus event, in order, in batches; nothing waits for it.",
};
