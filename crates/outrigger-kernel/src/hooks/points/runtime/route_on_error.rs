//! `runtime.route.on_error`.

use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "runtime.route.on_error",
    hook: "runtime.route.on_error",
    phase: Phase::Error,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, callID, tool, contract, provider, code",
    about: "A call that was bound to another provider than the local machine has failed.",
};
