//! `tool.after_result`: OpenCode's `tool.execute.after`.

use alloc::string::{String, ToString};

use outrigger_protocol::id::{CallId, SessionId};
use outrigger_protocol::tool::ToolOutput;
use serde::Serialize;
use serde_json::Value;

use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "tool.after_result",
    hook: "tool.execute.after",
    phase: Phase::After,
    patch: &[
        Field::optional("title", Kind::String),
        Field::optional("output", Kind::Any),
        Field::optional("metadata", Kind::Any),
        Field::optional("attachments", Kind::Array),
        Field::optional("content", Kind::Array),
        Field::optional("*", Kind::Any),
    ],
    block: true,
    deadline: Deadline::Normal,
    failure: Failure::ThrowBlocks,
    input: "tool, sessionID, callID, args",
    about: "A tool has answered; the answer is about to be stored and given to the model. A throw replaces it by an error.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Name of the tool.
    pub tool: &'a str,
    /// Id of the session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
    /// Id of the call.
    #[serde(rename = "callID")]
    pub call_id: &'a CallId,
    /// Arguments of the call.
    pub args: &'a Value,
}

/// Returns the result that handlers left. A key of the wrong type keeps its previous value, and a text that became a
/// number is converted back to text.
#[must_use]
pub fn read(left: Value, before: ToolOutput) -> ToolOutput {
    let Value::Object(mut left) = left else {
        return before;
    };
    let mut text = |key: &str, old: String| match left.remove(key) {
        Some(Value::String(text)) => text,
        Some(Value::Null) | None => old,
        Some(other) => other.to_string(),
    };
    let title = text("title", before.title);
    let output = text("output", before.output);
    let metadata = match left.remove("metadata") {
        Some(metadata @ Value::Object(_)) => metadata,
        _ => before.metadata,
    };
    let attachments = match left.remove("attachments") {
        Some(Value::Array(list)) => Some(list),
        Some(_) => before.attachments,
        None => None,
    };
    ToolOutput {
        title,
        output,
        metadata,
        attachments,
    }
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::ToolAfterResult;
    type Output = Value;
}
