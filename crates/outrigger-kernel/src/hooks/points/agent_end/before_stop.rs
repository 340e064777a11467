//! `agent_end.before_stop`.

use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::ModelRef;
use serde::Serialize;
use serde_json::Value;

use crate::hooks::payload::{Empty, HookInput};
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "agent_end.before_stop",
    hook: "agent_end.before_stop",
    phase: Phase::Before,
    patch: &[Field::optional("continue", Kind::String)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, model, messageID, active, lastMessage",
    about: "The turn is about to end. A text in `continue` is sent as a user message and continues it, at most `agent.max_continuations` times in a row. `active` is true if the turn was continued this way before.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Id of the session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
    /// Name of the agent.
    pub agent: &'a str,
    /// The model.
    pub model: &'a ModelRef,
    /// Last message of the model, if it was called.
    #[serde(rename = "messageID")]
    pub message_id: Option<&'a MessageId>,
    /// The turn has been kept from ending before.
    pub active: bool,
    /// Text of that message.
    #[serde(rename = "lastMessage")]
    pub last_message: &'a str,
}

/// Returns the text that the turn continues with.
#[must_use]
pub fn read(output: &Value) -> Option<&str> {
    let text = output.get("continue").and_then(Value::as_str)?.trim();
    (!text.is_empty()).then_some(text)
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::AgentEndBeforeStop;
    type Output = Empty;
}
