//! `llm.tool_definition`: OpenCode's `tool.definition`.

use alloc::string::String;

use serde::Serialize;
use serde_json::Value;

use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "llm.tool_definition",
    hook: "tool.definition",
    phase: Phase::Before,
    patch: &[
        Field::required("description", Kind::String),
        Field::required("parameters", Kind::Any),
        Field::optional("jsonSchema", Kind::Object),
    ],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "toolID",
    about: "A tool is about to be offered to the model. All tools of a step are one batch.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Name of the tool.
    #[serde(rename = "toolID")]
    pub tool_id: &'a str,
}

/// What handlers may change.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Output<'a> {
    /// Description for the model.
    pub description: &'a str,
    /// JSON Schema of the arguments.
    pub parameters: &'a Value,
    /// The schema again, for tools whose schema OpenCode keeps separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_schema: Option<&'a Value>,
}

/// Returns the description and the schema that handlers left, if they are valid.
#[must_use]
pub fn read(output: &Value) -> (Option<String>, Option<Value>) {
    let description = output.get("description").and_then(Value::as_str);
    let schema = output
        .get("jsonSchema")
        .or_else(|| output.get("parameters"));
    let schema = schema.filter(|schema| schema.is_object());
    (description.map(String::from), schema.cloned())
}

impl<'a> HookInput for Input<'a> {
    const POINT: HookPoint = HookPoint::LlmToolDefinition;
    type Output = Output<'a>;
}
