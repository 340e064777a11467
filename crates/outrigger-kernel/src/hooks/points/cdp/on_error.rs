//! `cdp.on_error`.

use serde::Serialize;

use super::Action;
use crate::hooks::payload::Context;
use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "cdp.on_error",
    hook: "cdp.on_error",
    phase: Phase::Error,
    patch: &[Field::required("context", Kind::Array)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, callID, action, risk, tab, url, target, field, to, code, message",
    about: "A browser action failed, or its outcome is unknown. The model reads the texts in `context` after the error message, which cannot be changed.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// The action.
    #[serde(flatten)]
    pub action: Action<'a>,
    /// Error code.
    pub code: &'a str,
    /// Error text for the model.
    pub message: &'a str,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::CdpOnError;
    type Output = Context;
}
