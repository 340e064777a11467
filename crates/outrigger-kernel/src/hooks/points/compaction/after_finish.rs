//! `compaction.after_finish`: OpenCode's `experimental.compaction.autocontinue`.

use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "compaction.after_finish",
    hook: "experimental.compaction.autocontinue",
    phase: Phase::After,
    patch: &[Field::required("enabled", Kind::Bool)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, model, provider, message, overflow",
    about: "The history was summarised because it was full; enabled says whether the turn goes on by itself.",
};
