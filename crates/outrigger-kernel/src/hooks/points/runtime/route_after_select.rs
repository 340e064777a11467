//! `runtime.route.after_select`.

use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "runtime.route.after_select",
    hook: "runtime.route.after_select",
    phase: Phase::Observe,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, callID, tool, contract, provider, rule?",
    about: "A tool call was bound to a provider, by the routing rule of that number, or to the local machine where none fits (C11).",
};
