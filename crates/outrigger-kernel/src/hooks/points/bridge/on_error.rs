//! `bridge.on_error`.

use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "bridge.on_error",
    hook: "bridge.on_error",
    phase: Phase::Error,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "callID, connection, sessionID?, tool, path, code, message",
    about: "The bridge has refused it behind its limits, or it failed.",
};
