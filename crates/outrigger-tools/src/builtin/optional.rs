//! Tools that OpenCode does not have (D5: `core-table`, `core-python`). They can always be run, and a model is shown
//! them only where somebody wants them: each of them costs tokens in every request, and OpenCode's agents have OpenCode's
//! tools.

use outrigger_protocol::tool::ToolSpec;
use serde_json::Value;

use super::spec;

/// What stands before the plugin's id in [`ToolSpec::source`].
const SOURCE: &str = "bundled:";

/// The bundled plugin that brings a tool which is offered only where it is wanted; `None` for all others.
#[must_use]
pub fn plugin(spec: &ToolSpec) -> Option<&str> {
    spec.source.strip_prefix(SOURCE)
}

/// A specification of such a tool.
pub(super) fn specified(
    plugin: &str,
    name: &str,
    description: &str,
    properties: Value,
    required: &[&str],
) -> ToolSpec {
    ToolSpec {
        source: format!("{SOURCE}{plugin}"),
        ..spec(name, description, properties, required)
    }
}
