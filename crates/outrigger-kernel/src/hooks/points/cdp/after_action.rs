//! `cdp.after_action`.

use serde::Serialize;

use super::Action;
use crate::hooks::payload::Context;
use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "cdp.after_action",
    hook: "cdp.after_action",
    phase: Phase::After,
    patch: &[Field::required("context", Kind::Array)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, callID, action, risk, tab, url, target, field, to",
    about: "A browser action was sent. The model reads the texts in `context` after the tool's result.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a>(pub Action<'a>);

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::CdpAfterAction;
    type Output = Context;
}
