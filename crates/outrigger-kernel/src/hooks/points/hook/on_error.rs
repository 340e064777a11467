//! `hook.on_error`.

use outrigger_protocol::id::{PluginId, SessionId};
use serde::Serialize;

use crate::hooks::payload::{Context, HookInput};
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "hook.on_error",
    hook: "hook.on_error",
    phase: Phase::Error,
    patch: &[Field::required("context", Kind::Array)],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "point, hook, plugin, outcome, message, sessionID?",
    about: "A handler at another point has failed, missed its deadline (C5), or answered against a rule (outcome refused). Texts in context are logged, stored and published as `outrigger.error.context`.",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Name of the point.
    pub point: &'a str,
    /// OpenCode's name of the point.
    pub hook: &'a str,
    /// Plugin of the handler.
    pub plugin: &'a PluginId,
    /// Outcome of its call; `refused` for an answer that violates a rule.
    pub outcome: &'a str,
    /// Details.
    pub message: Option<&'a str>,
    /// Id of the session.
    #[serde(rename = "sessionID")]
    pub session_id: Option<&'a SessionId>,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::HookOnError;
    type Output = Context;
}
