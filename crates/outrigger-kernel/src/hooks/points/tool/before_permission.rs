//! `tool.before_permission`: OpenCode's `permission.ask`.

use crate::hooks::spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};

/// Its row of the table.
pub const SPEC: PointSpec = PointSpec {
    name: "tool.before_permission",
    hook: "permission.ask",
    phase: Phase::Before,
    patch: &[Field::required("status", Kind::String)],
    block: false,
    // Not `fast`, though it is a question of policy: plugins of OpenCode ask a service, or a person's phone, over the
    // network here, and a late one costs its process.
    deadline: Deadline::Normal,
    failure: Failure::Open,
    input: "the permission request",
    about: "The user is about to be asked; status deny answers instead, and allow where the user granted the plugin that (`approve`). A rule that denies is never asked about.",
};
