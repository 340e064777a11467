//! `llm.before_params`: OpenCode's `chat.params`.

use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "llm.before_params",
    hook: "chat.params",
    phase: Phase::Before,
    patch: &[
        Field::optional("temperature", Kind::Number),
        Field::optional("topP", Kind::Number),
        Field::optional("topK", Kind::Number),
        Field::optional("maxOutputTokens", Kind::Number),
        Field::required("options", Kind::Object),
    ],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, model, provider, message",
    about: "Parameters of the request.",
};
