//! `llm.before_headers`: OpenCode's `chat.headers`.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use outrigger_protocol::Object;
use serde::Serialize;
use serde_json::Value;

use super::RequestInput;
use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "llm.before_headers",
    hook: "chat.headers",
    phase: Phase::Before,
    patch: &[Field::required("headers", Kind::Object)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, model, provider, message",
    about: "Headers of the request.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(transparent)]
pub struct Input<'a>(pub RequestInput<'a>);

/// What handlers may change.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Output {
    /// Headers to add.
    pub headers: Object,
}

/// Returns the headers that handlers left; values that are not text are dropped.
#[must_use]
pub fn read(output: &Value) -> Vec<(String, String)> {
    output
        .get("headers")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect()
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::LlmBeforeHeaders;
    type Output = Output;
}
