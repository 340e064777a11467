//! `bridge.after_invoke`.

use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "bridge.after_invoke",
    hook: "bridge.after_invoke",
    phase: Phase::Observe,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "callID, connection, sessionID?, tool, path",
    about: "The bridge has executed it; title and size of the answer are output.",
};
