//! `tool.before_permission`: OpenCode's `permission.ask`.

use outrigger_protocol::permission::PermissionRequest;
use serde::Serialize;
use serde_json::Value;

use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "tool.before_permission",
    hook: "permission.ask",
    phase: Phase::Before,
    patch: &[Field::required("status", Kind::String)],
    block: false,
    // Not `fast`, although it is a policy question: OpenCode plugins ask a service or a person's phone over the
    // network here, and a late answer costs the plugin its process.
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "the permission request",
    about: "The user is about to be asked for approval. `status: \"deny\"` refuses; `status: \"allow\"` approves if the plugin has the `approve` grant. What a rule denies does not reach this point.",
};

/// Input of the handlers: the request.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(transparent)]
pub struct Input<'a>(pub &'a PermissionRequest);

/// What handlers may change.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Output {
    /// The answer.
    pub status: Status,
}

/// An answer to the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Ask the user.
    Ask,
    /// Allow.
    Allow,
    /// Deny.
    Deny,
}

/// Returns the answer that handlers left; anything but a yes or a no leaves the question to the user.
#[must_use]
pub fn read(output: &Value) -> Status {
    match output.get("status").and_then(Value::as_str) {
        Some("allow") => Status::Allow,
        Some("deny") => Status::Deny,
        _ => Status::Ask,
    }
}

impl HookInput for Input<'_> {
    const POINT: HookPoint = HookPoint::ToolBeforePermission;
    type Output = Output;
}
