//! `session.before_fork`.

use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "session.before_fork",
    hook: "session.before_fork",
    phase: Phase::Observe,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID",
    about: "A session is about to be copied.",
};
