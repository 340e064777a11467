//! `compaction.after_finish`: OpenCode's `experimental.compaction.autocontinue`.

use outrigger_protocol::Object;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::MessageInfo;
use outrigger_protocol::model::{ModelInfo, ProviderInfo};
use serde::Serialize;
use serde_json::Value;

use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "compaction.after_finish",
    hook: "experimental.compaction.autocontinue",
    phase: Phase::After,
    patch: &[Field::required("enabled", Kind::Bool)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, model, provider, message, overflow",
    about: "The history was summarised because it was full; `enabled` says whether the turn continues automatically.",
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
    #[serde(serialize_with = "crate::hooks::points::llm::without_headers")]
    pub model: &'a ModelInfo,
    /// Provider.
    pub provider: Provider<'a>,
    /// The user's message.
    pub message: &'a MessageInfo,
    /// The history did not fit into a request.
    pub overflow: bool,
}

/// A provider, in OpenCode's form for this point.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Provider<'a> {
    /// Where it was found.
    pub source: &'a str,
    /// Full description.
    pub info: &'a ProviderInfo,
    /// Its options.
    pub options: &'a Object,
}

/// What handlers may change.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Output {
    /// Whether the turn continues automatically.
    pub enabled: bool,
}

/// Returns whether the turn continues automatically: unless a handler said no.
#[must_use]
pub fn read(output: Option<&Value>) -> bool {
    let enabled = output.and_then(|output| output.get("enabled"));
    enabled.and_then(Value::as_bool) != Some(false)
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::CompactionAfterFinish;
    type Output = Output;
}
