//! `llm.before_request`.

use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "llm.before_request",
    hook: "llm.before_request",
    phase: Phase::Before,
    patch: &[],
    block: true,
    // The one point that is a question of policy and nothing else, asked before each request: `fast` (C5). It is ours,
    // so no plugin of OpenCode is held to it.
    deadline: Deadline::Fast,
    failure: Failure::Open,
    input: "sessionID, agent, model, messageID, step",
    about: "The request is complete and about to be sent. A refusal is final: nothing repeats it.",
};
