//! `llm.before_headers`: OpenCode's `chat.headers`.

use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "llm.before_headers",
    hook: "chat.headers",
    phase: Phase::Before,
    patch: &[Field::required("headers", Kind::Object)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, model, provider, message",
    about: "Headers of the request.",
};
