//! `llm.before_messages`: OpenCode's `experimental.chat.messages.transform`.

use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "llm.before_messages",
    hook: "experimental.chat.messages.transform",
    phase: Phase::Before,
    patch: &[Field::required("messages", Kind::Array)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "",
    about: "The history that the request is made from. Changes are for this request; the stored history stays.",
};
