//! `agent_end.before_stop`.

use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::ModelRef;
use serde::Serialize;
use serde_json::Value;

use crate::hooks::payload::{Empty, HookInput};
use crate::hooks::points::HookPoint;
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

/// What handlers read.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
    /// Agent.
    pub agent: &'a str,
    /// Model.
    pub model: &'a ModelRef,
    /// The last message of the model, if it was asked.
    #[serde(rename = "messageID")]
    pub message_id: Option<&'a MessageId>,
    /// The turn has been kept from ending before.
    pub active: bool,
    /// Text of that message.
    #[serde(rename = "lastMessage")]
    pub last_message: &'a str,
}

/// What the turn continues with.
#[must_use]
pub fn read(output: &Value) -> Option<&str> {
    let text = output.get("continue").and_then(Value::as_str)?.trim();
    (!text.is_empty()).then_some(text)
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::AgentEndBeforeStop;
    type Output = Empty;
}
