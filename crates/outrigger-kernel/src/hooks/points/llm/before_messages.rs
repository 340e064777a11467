//! `llm.before_messages`: OpenCode's `experimental.chat.messages.transform`.

use outrigger_protocol::history::History;
use outrigger_protocol::turn::HookPayload;
use serde::Serialize;

use crate::hooks::payload::{Empty, HookInput};
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "llm.before_messages",
    hook: "experimental.chat.messages.transform",
    phase: Phase::Before,
    patch: &[Field::required("messages", Kind::Array)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "",
    about: "The history that the request is made from. Changes are for this request; the stored history stays.",
};

/// What handlers read.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input {}

impl Input {
    /// What the point is reached with: a conversation is shared, and written as `messages` only where it has to be.
    #[must_use]
    pub fn over(history: History) -> HookPayload {
        HookPayload {
            history: Some(history),
            ..Self {}.payload(&Empty {})
        }
    }
}

impl HookInput for Input {
    const POINT: HookPoint = HookPoint::LlmBeforeMessages;
    type Output = Empty;
}
