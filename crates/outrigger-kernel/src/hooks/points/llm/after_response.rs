//! `llm.after_response`.

use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "llm.after_response",
    hook: "llm.after_response",
    phase: Phase::Observe,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, model, reason, usage",
    about: "A request has been answered to its end.",
};
