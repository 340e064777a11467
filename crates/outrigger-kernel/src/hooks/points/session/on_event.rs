//! `session.on_event`: OpenCode's `event`. It has no payload here: events are sent to processes in separate
//! batches.

use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// The row of this point in the table of points.
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
