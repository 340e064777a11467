//! `session.after_append_entry`.

use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::{MessageInfo, Part};
use serde::Serialize;

use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "session.after_append_entry",
    hook: "session.after_append_entry",
    phase: Phase::Observe,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, messageID, role, agent",
    about: "A message is stored, with message and parts as output: one of the user's with its parts, the model's once it is complete; copies of a fork and commands that the user ran too. Once for each.",
};

/// What handlers read.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
    /// Message.
    #[serde(rename = "messageID")]
    pub message_id: &'a MessageId,
    /// `user` or `assistant`.
    pub role: &'a str,
    /// Agent.
    pub agent: &'a str,
}

/// What handlers read besides: nothing of it may be changed.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Output<'a> {
    /// The message.
    pub message: &'a MessageInfo,
    /// Its parts.
    pub parts: &'a [Part],
}

impl<'a> HookInput for Input<'a> {
    const POINT: HookPoint = HookPoint::SessionAfterAppendEntry;
    type Output = Output<'a>;
}
