//! `hook.on_error`.

use outrigger_protocol::id::{PluginId, SessionId};
use serde::Serialize;

use crate::hooks::payload::{Context, HookInput};
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// Its row of the table.
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

/// What handlers read.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// The point.
    pub point: &'a str,
    /// OpenCode's name of it.
    pub hook: &'a str,
    /// Whose handler.
    pub plugin: &'a PluginId,
    /// What its call came to; `refused` for an answer against a rule.
    pub outcome: &'a str,
    /// More about it.
    pub message: Option<&'a str>,
    /// Session.
    #[serde(rename = "sessionID")]
    pub session_id: Option<&'a SessionId>,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::HookOnError;
    type Output = Context;
}
