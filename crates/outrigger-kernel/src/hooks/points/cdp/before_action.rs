//! `cdp.before_action`.

use serde::Serialize;

use super::Action;
use crate::hooks::payload::Empty;
use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "cdp.before_action",
    hook: "cdp.before_action",
    phase: Phase::Before,
    patch: &[],
    block: true,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, callID, action, risk, tab, url, target, field, to",
    about: "A browser action is about to be sent, after the checks of lease, rules and approval. Throwing prevents it.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a>(pub Action<'a>);

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::CdpBeforeAction;
    type Output = Empty;
}
