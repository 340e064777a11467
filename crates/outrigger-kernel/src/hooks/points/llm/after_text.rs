//! `llm.after_text`: OpenCode's `experimental.text.complete`.

use outrigger_protocol::id::{MessageId, PartId, SessionId};
use serde::Serialize;
use serde_json::Value;

use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "llm.after_text",
    hook: "experimental.text.complete",
    phase: Phase::After,
    patch: &[Field::required("text", Kind::String)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, messageID, partID",
    about: "A text of the model is complete and about to be stored.",
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
    /// Part.
    #[serde(rename = "partID")]
    pub part_id: &'a PartId,
}

/// What handlers may change.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Output<'a> {
    /// The text.
    pub text: &'a str,
}

/// The text that handlers left.
#[must_use]
pub fn read(output: &Value) -> Option<&str> {
    output.get("text").and_then(Value::as_str)
}

impl<'a> HookInput for Input<'a> {
    const POINT: HookPoint = HookPoint::LlmAfterText;
    type Output = Output<'a>;
}
