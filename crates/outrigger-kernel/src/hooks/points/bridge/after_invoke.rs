//! `bridge.after_invoke`.

use serde::Serialize;

use super::Call;
use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
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

/// What handlers read.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(transparent)]
pub struct Input<'a>(pub Call<'a>);

/// What handlers read of the answer: nothing of it may be changed.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Output<'a> {
    /// Title of the answer.
    pub title: &'a str,
    /// Its size.
    pub bytes: usize,
}

impl<'a> HookInput for Input<'a> {
    const POINT: HookPoint = HookPoint::BridgeAfterInvoke;
    type Output = Output<'a>;
}
