//! `bridge.on_error`.

use serde::Serialize;

use super::Call;
use crate::hooks::payload::{Context, HookInput};
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "bridge.on_error",
    hook: "bridge.on_error",
    phase: Phase::Error,
    patch: &[Field::required("context", Kind::Array)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "callID, side, connector?, connection?, sessionID?, tool, path, code, message",
    about: "It was refused after the bridge's limits, or it failed. Texts in context are logged, stored and published as `outrigger.error.context`.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// The call.
    #[serde(flatten)]
    pub call: Call<'a>,
    /// Error code.
    pub code: &'a str,
    /// Error message.
    pub message: &'a str,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::BridgeOnError;
    type Output = Context;
}
