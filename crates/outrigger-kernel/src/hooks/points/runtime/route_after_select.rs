//! `runtime.route.after_select`.

use outrigger_protocol::descriptor::Contract;
use outrigger_protocol::id::{CallId, SessionId};
use serde::Serialize;

use crate::hooks::payload::{Empty, HookInput};
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "runtime.route.after_select",
    hook: "runtime.route.after_select",
    phase: Phase::Observe,
    patch: &[],
    block: false,
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "sessionID, agent, callID, tool, contract, provider, rule?",
    about: "A tool call was bound to a provider, by the routing rule of that number, or to the local machine where none fits (C11).",
};

/// Input of the handlers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input<'a> {
    /// Id of the session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
    /// Name of the agent.
    pub agent: &'a str,
    /// Id of the call.
    #[serde(rename = "callID")]
    pub call_id: &'a CallId,
    /// Name of the tool.
    pub tool: &'a str,
    /// Contract that was bound.
    pub contract: Contract,
    /// Name of the provider.
    pub provider: &'a str,
    /// Number of the routing rule; absent if none matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<usize>,
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::RuntimeRouteAfterSelect;
    type Output = Empty;
}
