//! Tools that OpenCode does not have (D5: `core-table`, `core-python`). They can always be run, but models see them only
//! if enabled: each costs tokens in every request, and OpenCode's agents expect OpenCode's tools.

use outrigger_protocol::tool::ToolSpec;
use serde_json::Value;

use super::spec;

/// Prefix of the plugin's id in [`ToolSpec::source`].
const SOURCE: &str = "bundled:";

/// Returns the bundled plugin that contributes an optional tool; `None` for all other tools.
#[must_use]
pub fn plugin(spec: &ToolSpec) -> Option<&str> {
    spec.source.strip_prefix(SOURCE)
}

/// Creates the specification of such a tool.
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
