//! JSON Schemas for editors: of opencode.json, of outrigger.toml and of a plugin's manifest, from the tables of their keys.

use outrigger_config::{OPENCODE_JSON, PLUGIN_MANIFEST};
use outrigger_protocol::manifest::MANIFEST_FILE;
use outrigger_schema::json::Writer;
use serde_json::{Value, json};

/// Unknown keys may have any value.
const OPEN: Writer = Writer {
    closed: false,
    named: None,
};
/// Unknown keys are errors.
pub(crate) const CLOSED: Writer = Writer {
    closed: true,
    named: None,
};

/// Returns the schema of opencode.json.
pub(crate) fn opencode() -> String {
    text(OPEN.value(&OPENCODE_JSON), "opencode.json")
}

/// Returns the schema of outrigger.toml.
pub(crate) fn settings() -> String {
    text(crate::generate::settings::schema(), "outrigger.toml")
}

/// Returns the schema of a manifest.
pub(crate) fn manifest() -> String {
    text(CLOSED.value(&PLUGIN_MANIFEST), MANIFEST_FILE)
}

fn text(mut schema: Value, title: &str) -> String {
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!(title);
    let text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    format!("{text}\n")
}
