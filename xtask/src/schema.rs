//! JSON Schemas for editors: of a plugin's manifest and of opencode.json, from the tables of their keys.

use outrigger_config::OPENCODE_JSON;
use outrigger_protocol::manifest::{FIELDS, FieldKind, MANIFEST_FILE, ManifestField};
use outrigger_schema::json::Writer;
use serde_json::{Map, Value, json};

/// Of opencode.json. Keys that it does not name may hold anything.
pub(crate) fn opencode() -> String {
    text(Writer::default().value(&OPENCODE_JSON), "opencode.json")
}

fn text(mut schema: Value, title: &str) -> String {
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!(title);
    let text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    format!("{text}\n")
}

/// Of a manifest.
pub(crate) fn manifest() -> String {
    let mut schema = table();
    for field in FIELDS {
        put(&mut schema, field, field.key);
    }
    for (alias, name) in [("capabilities", "provides"), ("hookPolicy", "hook_policy")] {
        schema["properties"][alias] = schema["properties"][name].clone();
    }
    text(schema, MANIFEST_FILE)
}

fn table() -> Value {
    json!({ "type": "object", "additionalProperties": false, "properties": Map::new() })
}

fn put(schema: &mut Value, field: &ManifestField, key: &str) {
    if let Some((first, rest)) = key.split_once('.') {
        let inner = &mut schema["properties"][first];
        if inner.is_null() {
            *inner = table();
        }
        return put(inner, field, rest);
    }
    let value = value(field);
    for name in [&[key], field.aliases].concat() {
        schema["properties"][name] = value.clone();
    }
    if field.required {
        match &mut schema["required"] {
            Value::Array(names) => names.push(json!(key)),
            none => *none = json!([key]),
        }
    }
}

fn value(field: &ManifestField) -> Value {
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    let tables = |fields: &[ManifestField]| {
        let mut one = table();
        for field in fields {
            put(&mut one, field, field.key);
        }
        json!({ "type": "array", "items": one })
    };
    let mut value = match field.kind {
        FieldKind::Text => json!({ "type": "string" }),
        FieldKind::Word(words) => json!({ "enum": words }),
        FieldKind::Flag => json!({ "type": "boolean" }),
        FieldKind::Whole(least) => json!({ "type": "integer", "minimum": least }),
        FieldKind::Texts => texts,
        FieldKind::Words(words) => json!({ "type": "array", "items": { "enum": words } }),
        FieldKind::Schema | FieldKind::Object => json!({ "type": "object" }),
        FieldKind::Tables(fields) => tables(fields),
        FieldKind::TextLists => json!({ "type": "array", "items": texts }),
        FieldKind::Ports => json!({
            "type": "array",
            "items": { "type": "integer", "minimum": 1, "maximum": 65535 },
        }),
    };
    value["description"] = json!(field.about);
    value
}
