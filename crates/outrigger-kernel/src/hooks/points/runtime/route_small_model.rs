//! `runtime.route.small_model`: OpenCode's `experimental.provider.small_model`.

use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "runtime.route.small_model",
    hook: "experimental.provider.small_model",
    phase: Phase::Before,
    patch: &[Field::optional("model", Kind::Any)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "provider",
    about: "Which small model makes titles and summaries, when the configuration names none.",
};
