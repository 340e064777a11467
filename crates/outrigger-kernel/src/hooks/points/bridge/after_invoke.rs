//! `bridge.after_invoke`.

use serde::Serialize;

use super::Call;
use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "bridge.after_invoke",
    hook: "bridge.after_invoke",
    phase: Phase::Observe,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "callID, side, connector?, connection?, sessionID?, tool, path",
    about: "It was executed; title and size of the answer are output.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(transparent)]
pub struct Input<'a>(pub Call<'a>);

/// The answer as handlers read it: read-only.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Output<'a> {
    /// Title of the answer.
    pub title: &'a str,
    /// Size of the answer in bytes.
    pub bytes: usize,
}

impl<'a> HookInput for Input<'a> {
    const POINT: HookPoint = HookPoint::BridgeAfterInvoke;
    type Output = Output<'a>;
}
