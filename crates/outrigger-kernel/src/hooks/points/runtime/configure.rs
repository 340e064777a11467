//! `runtime.configure`: OpenCode's `config`.

use serde::Serialize;
use serde_json::Value;

use crate::hooks::payload::HookInput;
use crate::hooks::points::HookPoint;
use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// The row of this point in the table of points.
pub const SPEC: PointSpec = PointSpec {
    name: "runtime.configure",
    hook: "config",
    phase: Phase::Before,
    patch: &[Field::optional("*", Kind::Any)],
    block: false,
    deadline: Deadline::Load,
    failure: Failure::Open,
    input: "",
    about: "The merged configuration, changed in place before anything is made from it.",
};

/// Input of the handlers: empty, as in OpenCode.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Input;

impl HookInput for Input {
    const POINT: HookPoint = HookPoint::RuntimeConfigure;
    type Output = Value;
}
