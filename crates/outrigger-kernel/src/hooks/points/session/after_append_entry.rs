//! `session.after_append_entry`.

use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::{MessageInfo, Part};
use serde::Serialize;

use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "session.after_append_entry",
    hook: "session.after_append_entry",
    phase: Phase::Observe,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, messageID, role, agent",
    about: "A message was stored, with `message` and `parts` as output: a user message with its parts, a model's message once it is complete, also copies of a fork and commands that the user ran. Once for each message.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Id of the session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
    /// Id of the message.
    #[serde(rename = "messageID")]
    pub message_id: &'a MessageId,
    /// `user` or `assistant`.
    pub role: &'a str,
    /// Name of the agent.
    pub agent: &'a str,
}

/// Further input of the handlers, read-only.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Output<'a> {
    /// The message.
    pub message: &'a MessageInfo,
    /// Parts of the message.
    pub parts: &'a [Part],
}

impl<'a> HookInput for Input<'a> {
    const POINT: HookPoint = HookPoint::SessionAfterAppendEntry;
    type Output = Output<'a>;
}
