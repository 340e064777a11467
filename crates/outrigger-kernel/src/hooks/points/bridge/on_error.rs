//! `bridge.on_error`.

use serde::Serialize;

use super::Call;
use crate::hooks::payload::{Empty, HookInput};
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "bridge.on_error",
    hook: "bridge.on_error",
    phase: Phase::Error,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "callID, connection, sessionID?, tool, path, code, message",
    about: "The bridge has refused it after its limits, or it failed.",
};

/// What handlers read.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// The call.
    #[serde(flatten)]
    pub call: Call<'a>,
    /// Code of the failure.
    pub code: &'a str,
    /// What it says.
    pub message: &'a str,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::BridgeOnError;
    type Output = Empty;
}
