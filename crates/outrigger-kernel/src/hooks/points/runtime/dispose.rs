//! `runtime.dispose`: OpenCode's `dispose`.

use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "runtime.dispose",
    hook: "dispose",
    phase: Phase::Observe,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "",
    about: "The plugin's process is about to end.",
};
