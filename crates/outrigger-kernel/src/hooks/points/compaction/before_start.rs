//! `compaction.before_start`: OpenCode's `experimental.session.compacting`.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use outrigger_protocol::id::SessionId;
use serde::Serialize;
use serde_json::Value;

use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "compaction.before_start",
    hook: "experimental.session.compacting",
    phase: Phase::Before,
    patch: &[
        Field::required("context", Kind::Array),
        Field::optional("prompt", Kind::String),
    ],
    block: true,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, instructions?",
    about: "The history is about to be summarised: `context` is appended to the prompt, `prompt` replaces it. Refusing an automatic compaction postpones it; refusing a requested one makes it fail.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Id of the session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
    /// What the user wants to keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<&'a str>,
}

/// What handlers may change.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Output {
    /// Texts that are appended to the prompt. `prompt` is absent until a handler sets it.
    pub context: Vec<String>,
}

/// Result of the handlers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Texts that are appended to the prompt; `None` if the list was removed.
    pub context: Option<Vec<String>>,
    /// Prompt to use instead.
    pub prompt: Option<String>,
}

/// Reads the handlers' result.
#[must_use]
pub fn read(output: &Value) -> Left {
    let texts = output.get("context").and_then(Value::as_array);
    let texts = texts.map(|texts| texts.iter().filter_map(Value::as_str));
    let prompt = output.get("prompt").and_then(Value::as_str);
    Left {
        context: texts.map(|texts| texts.map(str::to_owned).collect()),
        prompt: prompt.map(str::to_owned),
    }
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::CompactionBeforeStart;
    type Output = Output;
}
