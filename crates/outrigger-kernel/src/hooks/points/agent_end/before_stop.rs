//! `agent_end.before_stop`.

use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "agent_end.before_stop",
    hook: "agent_end.before_stop",
    phase: Phase::Before,
    patch: &[Field::optional("continue", Kind::String)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, model, messageID, active, lastMessage",
    about: "The turn is done and about to end; a text in continue goes on as a message of the user's, at most agent.max_continuations times in a row. active says that it went on so before.",
};
