//! `llm.tool_definition`: OpenCode's `tool.definition`.

use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "llm.tool_definition",
    hook: "tool.definition",
    phase: Phase::Before,
    patch: &[
        Field::required("description", Kind::String),
        Field::required("parameters", Kind::Any),
        Field::optional("jsonSchema", Kind::Object),
    ],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "toolID",
    about: "A tool is about to be offered to the model. All tools of a step are one batch.",
};
