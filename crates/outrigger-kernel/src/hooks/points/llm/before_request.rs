//! `llm.before_request`.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::ModelRef;
use outrigger_protocol::model::{Messages, ModelParams, ModelRequest, ToolOffer};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RequestInput;
use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "llm.before_request",
    hook: "llm.before_request",
    phase: Phase::Before,
    patch: &[
        Field::required("messages", Kind::Array),
        Field::required("tools", Kind::Array),
        Field::required("params", Kind::Object),
    ],
    block: true,
    // The only point that is purely a policy question, asked before each request: `fast` (C5). OpenCode has no such
    // point, so none of its plugins is affected.
    deadline: Deadline::Fast,
    failure: Failure::Open,
    input: "sessionID, agent, model, messageID, step",
    about: "The request is complete and about to be sent: messages, tools and params as they are, without headers. A tool that was not offered cannot be added. A refusal is final: nothing repeats it.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub enum Input<'a> {
    /// For a step of a turn.
    Step(&'a Step),
    /// For a request outside of turns, for a title.
    Beside(RequestInput<'a>),
}

/// A step of a turn.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// Id of the session.
    #[serde(rename = "sessionID")]
    pub session_id: SessionId,
    /// Name of the agent.
    pub agent: String,
    /// The model.
    pub model: ModelRef,
    /// Number of the step, from 1.
    pub step: u32,
    /// Id of the message for the answer.
    #[serde(rename = "messageID")]
    pub message_id: Option<MessageId>,
}

/// What handlers may change.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Output<'a> {
    /// Messages, the system's first.
    pub messages: &'a Messages,
    /// Offered tools.
    pub tools: &'a [ToolOffer],
    /// Parameters.
    pub params: &'a ModelParams,
}

impl<'a> Output<'a> {
    /// Returns the payload of a request. Its headers belong to `llm.before_headers`.
    #[must_use]
    pub fn of(request: &'a ModelRequest) -> Self {
        Self {
            messages: &request.messages,
            tools: &request.tools,
            params: &request.params,
        }
    }
}

/// The request as handlers left it.
#[derive(Deserialize)]
struct Left {
    messages: Messages,
    tools: Vec<ToolOffer>,
    params: ModelParams,
}

/// Takes over what handlers left. A tool that was not offered is dropped: whether it may be used was not decided.
///
/// # Errors
/// What is not in the form of a request; it stays as it is then.
pub fn read(output: Value, request: &mut ModelRequest) -> Result<(), String> {
    let mut left: Left = serde_json::from_value(output).map_err(|error| error.to_string())?;
    let offered = |tool: &ToolOffer| request.tools.iter().any(|it| it.name == tool.name);
    left.tools.retain(offered);
    request.messages = left.messages;
    request.tools = left.tools;
    request.params = left.params;
    Ok(())
}

impl<'a> HookInput for Input<'a> {
    const POINT: HookPoint = HookPoint::LlmBeforeRequest;
    type Output = Output<'a>;
}
