//! `llm.before_system`: OpenCode's `experimental.chat.system.transform`.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use outrigger_protocol::id::SessionId;
use outrigger_protocol::model::ModelInfo;
use serde::Serialize;
use serde_json::Value;

use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "llm.before_system",
    hook: "experimental.chat.system.transform",
    phase: Phase::Before,
    patch: &[Field::required("system", Kind::Array)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID?, model",
    about: "The system prompt, as a list of texts.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Id of the session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
    /// The model.
    #[serde(serialize_with = "super::without_headers")]
    pub model: &'a ModelInfo,
}

/// What handlers may change.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Output<'a> {
    /// The system prompt. OpenCode's is one text; handlers may add more.
    pub system: [&'a str; 1],
}

/// Returns the texts that handlers left, without empty ones.
#[must_use]
pub fn read(output: &Value) -> Vec<String> {
    output
        .get("system")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
        .collect()
}

impl<'a> HookInput for Input<'a> {
    const POINT: HookPoint = HookPoint::LlmBeforeSystem;
    type Output = Output<'a>;
}
