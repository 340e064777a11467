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

/// Its row of the table.
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
    // The one point that is a question of policy and nothing else, asked before each request: `fast` (C5). It is ours,
    // so no plugin of OpenCode is held to it.
    deadline: Deadline::Fast,
    failure: Failure::Open,
    input: "sessionID, agent, model, messageID, step",
    about: "The request is complete and about to be sent: messages, tools and params as they are, without headers. A tool that was not offered cannot be added. A refusal is final: nothing repeats it.",
};

/// What handlers read.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub enum Input<'a> {
    /// Of a step of a turn.
    Step(&'a Step),
    /// Of a request beside a turn, for a title.
    Beside(RequestInput<'a>),
}

/// A step of a turn.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// Session.
    #[serde(rename = "sessionID")]
    pub session_id: SessionId,
    /// Agent.
    pub agent: String,
    /// Model.
    pub model: ModelRef,
    /// Number of the step, from 1.
    pub step: u32,
    /// The message that the answer goes into.
    #[serde(rename = "messageID")]
    pub message_id: Option<MessageId>,
}

/// What handlers may change.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Output<'a> {
    /// Messages, the system's first.
    pub messages: &'a Messages,
    /// Tools that are offered.
    pub tools: &'a [ToolOffer],
    /// Parameters.
    pub params: &'a ModelParams,
}

impl<'a> Output<'a> {
    /// Of a request. Its headers are `llm.before_headers`' business.
    #[must_use]
    pub fn of(request: &'a ModelRequest) -> Self {
        Self {
            messages: &request.messages,
            tools: &request.tools,
            params: &request.params,
        }
    }
}

/// What handlers left of a request.
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
