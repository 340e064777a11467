//! `tool.after_result`: OpenCode's `tool.execute.after`.

use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "tool.after_result",
    hook: "tool.execute.after",
    phase: Phase::After,
    patch: &[
        Field::optional("title", Kind::String),
        Field::optional("output", Kind::Any),
        Field::optional("metadata", Kind::Any),
        Field::optional("attachments", Kind::Array),
        Field::optional("content", Kind::Array),
        Field::optional("*", Kind::Any),
    ],
    block: true,
    deadline: Deadline::Normal,
    failure: Failure::ThrowBlocks,
    input: "tool, sessionID, callID, args",
    about: "A tool has answered; the answer is about to be stored and given to the model. A throw replaces it by an error.",
};
