//! `session.after_complete_message`, which plugins bring as `message.completed`.

use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::{MessageInfo, Part};
use serde::Serialize;

use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "session.after_complete_message",
    hook: "message.completed",
    phase: Phase::Observe,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, model, messageID, variant?",
    about: "An assistant message of a turn is stored, and every tool part of it has reached its final state; once for each message, with message and parts as output (A4).",
};

/// What handlers read.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
    /// Agent.
    pub agent: &'a str,
    /// Message.
    #[serde(rename = "messageID")]
    pub message_id: &'a MessageId,
    /// Model that wrote it.
    pub model: Model<'a>,
    /// Its variant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<&'a str>,
}

/// A model, by its names.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Model<'a> {
    /// Provider.
    #[serde(rename = "providerID")]
    pub provider_id: &'a str,
    /// Model.
    #[serde(rename = "modelID")]
    pub model_id: &'a str,
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
    const POINT: HookPoint = HookPoint::SessionAfterCompleteMessage;
    type Output = Output<'a>;
}
