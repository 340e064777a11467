//! `llm.before_system`: OpenCode's `experimental.chat.system.transform`.

use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "llm.before_system",
    hook: "experimental.chat.system.transform",
    phase: Phase::Before,
    patch: &[Field::required("system", Kind::Array)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID?, model",
    about: "The system prompt, as a list of texts.",
};
