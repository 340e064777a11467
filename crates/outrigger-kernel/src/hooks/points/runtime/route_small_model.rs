//! `runtime.route.small_model`: OpenCode's `experimental.provider.small_model`.

use alloc::borrow::ToOwned;

use outrigger_protocol::message::ModelRef;
use outrigger_protocol::model::ProviderInfo;
use serde::Serialize;
use serde_json::Value;

use crate::hooks::payload::{Empty, HookInput};
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "runtime.route.small_model",
    hook: "experimental.provider.small_model",
    phase: Phase::Before,
    patch: &[Field::optional("model", Kind::Any)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "provider",
    about: "Selects the small model for titles and summaries, if the configuration names none.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Provider of the turn's model; `None` if unknown.
    pub provider: Option<&'a ProviderInfo>,
}

/// Returns the model that handlers left, if it is valid.
#[must_use]
pub fn read(output: &Value) -> Option<ModelRef> {
    let model = output.get("model")?;
    let text = |key: &str| model.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(ModelRef {
        provider_id: text("providerID")?,
        model_id: text("modelID").or_else(|| text("id"))?,
        variant: None,
    })
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::RuntimeRouteSmallModel;
    type Output = Empty;
}
