//! `llm.after_text`: OpenCode's `experimental.text.complete`.

use outrigger_protocol::id::{MessageId, PartId, SessionId};
use serde::Serialize;
use serde_json::Value;

use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
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

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Id of the session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
    /// Id of the message.
    #[serde(rename = "messageID")]
    pub message_id: &'a MessageId,
    /// Id of the part.
    #[serde(rename = "partID")]
    pub part_id: &'a PartId,
}

/// What handlers may change.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Output<'a> {
    /// The text.
    pub text: &'a str,
}

/// Returns the text that handlers left.
#[must_use]
pub fn read(output: &Value) -> Option<&str> {
    output.get("text").and_then(Value::as_str)
}

impl<'a> HookInput for Input<'a> {
    const POINT: HookPoint = HookPoint::LlmAfterText;
    type Output = Output<'a>;
}
