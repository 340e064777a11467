//! `cdp.after_verify`.

use serde::Serialize;

use super::Action;
use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "cdp.after_verify",
    hook: "cdp.after_verify",
    phase: Phase::After,
    patch: &[Field::required("context", Kind::Array)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, callID, action, risk, tab, url, target, field, to, unmet",
    about: "An action or a page was verified. Handlers cannot change the status: `failed_verify` never becomes a success (C9). The model reads the texts in `context`.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// The action; for `browser_verify` it is `verify`.
    #[serde(flatten)]
    pub action: Action<'a>,
    /// Expectations that were not met, as text.
    pub unmet: &'a str,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::CdpAfterVerify;
    type Output = super::Verdict<'static>;
}
