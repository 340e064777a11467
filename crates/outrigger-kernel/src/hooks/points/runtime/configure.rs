//! `runtime.configure`: OpenCode's `config`.

use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "runtime.configure",
    hook: "config",
    phase: Phase::Before,
    patch: &[Field::optional("*", Kind::Any)],
    block: false,
    deadline: Deadline::Load,
    failure: Failure::Open,
    input: "",
    about: "The merged configuration, changed in place before anything is made from it.",
};
