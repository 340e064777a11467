//! `compaction.before_start`: OpenCode's `experimental.session.compacting`.

use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "compaction.before_start",
    hook: "experimental.session.compacting",
    phase: Phase::Before,
    patch: &[
        Field::required("context", Kind::Array),
        Field::optional("prompt", Kind::String),
    ],
    block: true,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, instructions?",
    about: "The history is about to be summarised: context is appended to the prompt, prompt replaces it. One that only was due and is refused is put off, one that was asked for fails.",
};
