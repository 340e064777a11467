//! `session.after_complete_message`, which plugins register as `message.completed`.

use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::{MessageInfo, Part};
use serde::Serialize;

use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// The row of this point in the table of points.
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

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Id of the session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
    /// Name of the agent.
    pub agent: &'a str,
    /// Id of the message.
    #[serde(rename = "messageID")]
    pub message_id: &'a MessageId,
    /// Model that wrote it.
    pub model: Model<'a>,
    /// Variant of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<&'a str>,
}

/// A model, by ids.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Model<'a> {
    /// Id of the provider.
    #[serde(rename = "providerID")]
    pub provider_id: &'a str,
    /// Id of the model.
    #[serde(rename = "modelID")]
    pub model_id: &'a str,
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
    const POINT: HookPoint = HookPoint::SessionAfterCompleteMessage;
    type Output = Output<'a>;
}
