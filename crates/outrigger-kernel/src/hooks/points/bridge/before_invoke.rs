//! `bridge.before_invoke`.

use serde::Serialize;

use super::Call;
use crate::hooks::payload::{Empty, HookInput};
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "bridge.before_invoke",
    hook: "bridge.before_invoke",
    phase: Phase::Observe,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "callID, side, connector?, connection?, sessionID?, tool, path",
    about: "A connector asks a bridge, or a remote controller asks ours, to execute something (C1, C17). Authentication, limits and guards cannot be changed.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(transparent)]
pub struct Input<'a>(pub Call<'a>);

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::BridgeBeforeInvoke;
    type Output = Empty;
}
