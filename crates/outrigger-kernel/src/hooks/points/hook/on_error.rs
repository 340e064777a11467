//! `hook.on_error`.

use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "hook.on_error",
    hook: "hook.on_error",
    phase: Phase::Error,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "point, hook, plugin, outcome, message, sessionID?",
    about: "A handler at another point has failed, missed its deadline (C5), or answered against a rule (outcome refused).",
};
