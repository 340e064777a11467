//! `llm.before_messages`: OpenCode's `experimental.chat.messages.transform`.

use outrigger_protocol::history::History;
use outrigger_protocol::turn::HookPayload;
use serde::Serialize;

use crate::hooks::payload::{Empty, HookInput};
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
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

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input {}

impl Input {
    /// Returns the payload for a conversation: it is shared, and serialised as `messages` only when needed.
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
