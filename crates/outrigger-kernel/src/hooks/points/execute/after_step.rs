//! `execute.after_step`.

use alloc::string::String;
use alloc::vec::Vec;

use outrigger_protocol::id::{CallId, MessageId, SessionId};
use outrigger_protocol::message::ModelRef;
use outrigger_protocol::text::floor;
use serde::Serialize;
use serde_json::Value;

use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "execute.after_step",
    hook: "execute.after_step",
    phase: Phase::After,
    patch: &[Field::required("results", Kind::Array)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, model, messageID, finish?",
    about: "A step is over: its calls have ended, and its message is about to be stored as complete. results are the calls that succeeded (callID, tool, title, output); what stands in title and output there is stored and given to the model. Notified only, without results, of a step that was stopped, failed, or was a command's subtask.",
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
    /// The step's message.
    #[serde(rename = "messageID")]
    pub message_id: &'a MessageId,
    /// Why it ended, where the model said so.
    pub finish: Option<&'a str>,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::ExecuteAfterStep;
    type Output = Output;
}

/// What handlers may change.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Output {
    /// The calls of the step that succeeded.
    pub results: Vec<StepResult>,
}

/// What a call of the step answered.
#[derive(Clone, Debug, Serialize)]
pub struct StepResult {
    /// Call.
    #[serde(rename = "callID")]
    pub call_id: CallId,
    /// Tool.
    pub tool: String,
    /// Title, for people.
    pub title: String,
    /// What the model reads.
    pub output: String,
}

/// Bytes to which a handler may lengthen an output: those to which the tool runtime cuts answers.
const MAX_OUTPUT: usize = 50 * 1024;

/// Puts what handlers left of a call's answer into its title and output. A key that is missing, or no text, keeps what it
/// was, and an output that was lengthened beyond what tools may answer is cut.
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
        let limit = output.len().max(MAX_OUTPUT);
        *output = String::from(&text[..floor(text, limit)]);
    }
}
