//! `llm.before_params`: OpenCode's `chat.params`.

use outrigger_protocol::model::ModelParams;
use serde::Serialize;
use serde_json::Value;

use super::RequestInput;
use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "llm.before_params",
    hook: "chat.params",
    phase: Phase::Before,
    patch: &[
        Field::optional("temperature", Kind::Number),
        Field::optional("topP", Kind::Number),
        Field::optional("topK", Kind::Number),
        Field::optional("maxOutputTokens", Kind::Number),
        Field::required("options", Kind::Object),
    ],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, model, provider, message",
    about: "Parameters of the request.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(transparent)]
pub struct Input<'a>(pub RequestInput<'a>);

/// Returns the parameters that handlers left; a value of the wrong type is treated as absent.
#[must_use]
pub fn read(output: &Value) -> ModelParams {
    let number = |key: &str| output.get(key).and_then(Value::as_f64);
    let options = output.get("options").and_then(Value::as_object);
    ModelParams {
        temperature: number("temperature"),
        top_p: number("topP"),
        top_k: number("topK"),
        max_output_tokens: output.get("maxOutputTokens").and_then(Value::as_u64),
        options: options.cloned().unwrap_or_default(),
    }
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::LlmBeforeParams;
    type Output = ModelParams;
}
