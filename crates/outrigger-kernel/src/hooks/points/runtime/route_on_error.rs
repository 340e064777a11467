//! `runtime.route.on_error`.

use serde::Serialize;

use super::route_after_select;
use crate::hooks::payload::{Context, HookInput};
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "runtime.route.on_error",
    hook: "runtime.route.on_error",
    phase: Phase::Error,
    patch: &[Field::required("context", Kind::Array)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, callID, tool, contract, provider, rule?, code",
    about: "A call that was bound to another provider than the local machine has failed. Texts in context are logged, stored and published as `outrigger.error.context`.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// The call and its provider.
    #[serde(flatten)]
    pub bound: route_after_select::Input<'a>,
    /// Error code.
    pub code: &'a str,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::RuntimeRouteOnError;
    type Output = Context;
}
