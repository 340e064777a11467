//! `execute.after_step`.

use alloc::string::String;
use alloc::vec::Vec;

use outrigger_protocol::id::{CallId, MessageId, SessionId};
use outrigger_protocol::message::ModelRef;
use serde::Serialize;
use serde_json::Value;

use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "execute.after_step",
    hook: "execute.after_step",
    phase: Phase::After,
    patch: &[Field::required("results", Kind::Array)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, model, messageID, finish?",
    about: "A step is over: its calls have ended, and its message is about to be stored as complete. `results` has the calls that succeeded (`callID`, `tool`, `title`, `output`); changes of `title` and `output` are stored and passed to the model. After a step that was stopped, failed, or was a command's subtask, handlers are only notified, without results.",
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
    /// Id of the step's message.
    #[serde(rename = "messageID")]
    pub message_id: &'a MessageId,
    /// Why it ended, if the model said so.
    pub finish: Option<&'a str>,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::ExecuteAfterStep;
    type Output = Output;
}

/// What handlers may change.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Output {
    /// Successful calls of the step.
    pub results: Vec<StepResult>,
}

/// Result of a call of the step.
#[derive(Clone, Debug, Serialize)]
pub struct StepResult {
    /// Id of the call.
    #[serde(rename = "callID")]
    pub call_id: CallId,
    /// Name of the tool.
    pub tool: String,
    /// Display title.
    pub title: String,
    /// What the model reads.
    pub output: String,
}

/// Maximum size in bytes to which a handler may extend an output: the limit of the tool runtime.
const MAX_OUTPUT: usize = 50 * 1024;

/// Copies the handlers' changes of a result to its title and output. A key that is missing or not text keeps its value;
/// an output extended beyond the limit for tools is truncated.
pub fn read(left: &Value, call: &CallId, title: &mut String, output: &mut String) {
    let results = left.get("results").and_then(Value::as_array);
    let is_of_call = |it: &&Value| it.get("callID").and_then(Value::as_str) == Some(call.as_str());
    let Some(result) = results.into_iter().flatten().find(is_of_call) else {
        return;
    };
    let text = |key: &str| result.get(key).and_then(Value::as_str);
    if let Some(text) = text("title") {
        *title = String::from(text);
    }
    if let Some(text) = text("output") {
        let limit = output.len().max(MAX_OUTPUT).min(text.len());
        let end = (0..=limit).rfind(|at| text.is_char_boundary(*at));
        *output = String::from(&text[..end.unwrap_or(0)]);
    }
}
