//! `llm.after_text`: OpenCode's `experimental.text.complete`.

use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "llm.after_text",
    hook: "experimental.text.complete",
    phase: Phase::After,
    patch: &[Field::required("text", Kind::String)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, messageID, partID",
    about: "A text of the model is complete and about to be stored.",
};
