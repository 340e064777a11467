//! `tool.before_call`: OpenCode's `tool.execute.before`.

use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "tool.before_call",
    hook: "tool.execute.before",
    phase: Phase::Before,
    patch: &[Field::required("args", Kind::Object)],
    block: true,
    deadline: Deadline::Normal,
    failure: Failure::ThrowBlocks,
    input: "tool, sessionID, callID",
    about: "A tool is about to run. What stands in args is checked again and is what the tool gets; where the user did not grant the plugin `rewrite`, the user is asked about the changed call. A throw refuses the call.",
};
