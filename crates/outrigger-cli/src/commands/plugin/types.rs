//! TypeScript types of the points and events that plugins declare (B8), generated from their JSON Schemas.

use std::collections::BTreeSet;

use outrigger_plugins::{EventRow, PointRow};
use serde_json::{Map, Value};

/// Maximum depth; deeper schemas become `unknown`.
const MAX_DEPTH: usize = 32;

/// Returns a `.d.ts` with the declarations of one plugin, or all of them.
pub(crate) fn declarations(points: &[PointRow], events: &[EventRow], of: Option<&str>) -> String {
    let wanted = |by: &str| of.is_none_or(|of| of == by);
    let mut text = format!(
        "// Made by `outrigger plugin points --types{}`.\n\nimport \"outrigger\";\n\ndeclare module \"outrigger\" {{\n  interface OwnPoints {{\n",
        of.map(|of| format!(" {of}")).unwrap_or_default()
    );
    for row in points {
        if !row.declared_by.as_deref().is_some_and(wanted) {
            continue;
        }
        let side = |schema: &Option<Value>, without: &str| match schema {
            Some(schema) => typed(schema, 0),
            None => without.to_owned(),
        };
        text.push_str(&format!(
            "{}    {}: {{ input: {}; output: {} }};\n",
            comment(&row.description),
            key(&row.name),
            side(&row.input, "unknown"),
            side(&row.output, "Record<string, unknown>")
        ));
    }
    text.push_str("  }\n  interface OwnEvents {\n");
    for row in events.iter().filter(|row| wanted(&row.declared_by)) {
        let schema = row.schema.as_ref();
        text.push_str(&format!(
            "{}    {}: {};\n",
            comment(&row.description),
            key(&row.name),
            schema.map_or_else(
                || "Record<string, unknown>".to_owned(),
                |schema| typed(schema, 0)
            )
        ));
    }
    text.push_str("  }\n}\n");
    text
}

fn comment(about: &str) -> String {
    let line: Vec<&str> = about.split_whitespace().collect();
    format!("    /** {} */\n", line.join(" ").replace("*/", "* /"))
}

/// Returns a type that includes all values of a schema: constraints beyond types are ignored.
fn typed(schema: &Value, depth: usize) -> String {
    let Value::Object(schema) = schema else {
        return if *schema == Value::Bool(false) {
            "never".to_owned()
        } else {
            "unknown".to_owned()
        };
    };
    if depth > MAX_DEPTH {
        return "unknown".to_owned();
    }
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    if let Some(value) = schema.get("const") {
        return literal(value);
    }
    if let Some(values) = list("enum") {
        return one_of(values.iter().map(literal));
    }
    let mut all: Vec<String> = Vec::new();
    for key in ["anyOf", "oneOf"] {
        if let Some(ways) = list(key) {
            all.push(one_of(ways.iter().map(|way| typed(way, depth + 1))));
        }
    }
    let parts = list("allOf").into_iter().flatten();
    all.extend(parts.map(|part| typed(part, depth + 1)));
    match schema.get("type") {
        Some(Value::String(kind)) => all.push(of_kind(kind, schema, depth)),
        Some(Value::Array(kinds)) => {
            let kinds = kinds.iter().filter_map(Value::as_str);
            all.push(one_of(kinds.map(|kind| of_kind(kind, schema, depth))));
        }
        _ if schema.contains_key("properties") => all.push(of_kind("object", schema, depth)),
        _ => {}
    }
    all.retain(|it| it != "unknown");
    match all.as_slice() {
        [] => "unknown".to_owned(),
        [one] => one.clone(),
        several => several
            .iter()
            .map(|it| grouped(it))
            .collect::<Vec<_>>()
            .join(" & "),
    }
}

fn of_kind(kind: &str, schema: &Map<String, Value>, depth: usize) -> String {
    match kind {
        "string" | "boolean" | "null" => kind.to_owned(),
        "number" | "integer" => "number".to_owned(),
        "array" => {
            if let Some(items) = schema.get("prefixItems").and_then(Value::as_array) {
                let items: Vec<String> = items.iter().map(|it| typed(it, depth + 1)).collect();
                return format!("[{}, ...unknown[]]", items.join(", "));
            }
            let items = schema.get("items").map(|items| typed(items, depth + 1));
            format!("{}[]", grouped(items.as_deref().unwrap_or("unknown")))
        }
        "object" => object(schema, depth),
        _ => "unknown".to_owned(),
    }
}

fn object(schema: &Map<String, Value>, depth: usize) -> String {
    let required: BTreeSet<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut fields: Vec<String> = properties
        .into_iter()
        .flatten()
        .map(|(name, value)| {
            let may_be_absent = if required.contains(name.as_str()) {
                ""
            } else {
                "?"
            };
            format!("{}{may_be_absent}: {}", key(name), typed(value, depth + 1))
        })
        .collect();
    match schema.get("additionalProperties") {
        Some(Value::Bool(false)) => {}
        // Additional properties get a type only if there are no named ones, since an index signature applies to those,
        // too.
        Some(more) if fields.is_empty() => {
            return format!("Record<string, {}>", typed(more, depth + 1));
        }
        None if fields.is_empty() => return "Record<string, unknown>".to_owned(),
        _ => fields.push("[key: string]: unknown".to_owned()),
    }
    if fields.is_empty() {
        "Record<string, never>".to_owned()
    } else {
        format!("{{ {} }}", fields.join("; "))
    }
}

fn one_of(ways: impl Iterator<Item = String>) -> String {
    let mut once: Vec<String> = Vec::new();
    for way in ways {
        if !once.contains(&way) {
            once.push(way);
        }
    }
    if once.is_empty() {
        "never".to_owned()
    } else {
        once.join(" | ")
    }
}

/// Adds parentheses where precedence requires them.
fn grouped(of: &str) -> String {
    if of.contains([' ', '|', '&']) && !(of.starts_with('{') && of.ends_with('}')) {
        format!("({of})")
    } else {
        of.to_owned()
    }
}

/// Returns the literal type of a value.
fn literal(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => "unknown".to_owned(),
        plain => plain.to_string(),
    }
}

fn key(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let starts = name.chars().next().is_some_and(|c| !c.is_ascii_digit());
    if starts && name.chars().all(plain) {
        name.to_owned()
    } else {
        Value::from(name).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_as_types() {
        let mut deep = json!({"type": "string"});
        for _ in 0..100 {
            deep = json!({"type": "array", "items": deep});
        }
        assert!(typed(&deep, 0).starts_with("unknown[]"));
        for (schema, want) in [
            (json!(true), "unknown"),
            (json!(false), "never"),
            (json!({}), "unknown"),
            (json!({"$ref": "#/x"}), "unknown"),
            (json!({"type": "string", "minLength": 3}), "string"),
            (json!({"type": "integer"}), "number"),
            (json!({"type": ["string", "null"]}), "string | null"),
            (json!({"const": "a"}), "\"a\""),
            (json!({"enum": ["a", 1, null, "a"]}), "\"a\" | 1 | null"),
            (json!({"type": "array"}), "unknown[]"),
            (
                json!({"type": "array", "items": {"type": ["string", "number"]}}),
                "(string | number)[]",
            ),
            (
                json!({"type": "array", "prefixItems": [{"type": "string"}]}),
                "[string, ...unknown[]]",
            ),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "boolean"}]}),
                "string | boolean",
            ),
            (
                json!({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}),
                "{ a?: unknown; [key: string]: unknown } & { b?: unknown; [key: string]: unknown }",
            ),
            (json!({"type": "object"}), "Record<string, unknown>"),
            (
                json!({"type": "object", "additionalProperties": {"type": "number"}}),
                "Record<string, number>",
            ),
            (
                json!({"type": "object", "additionalProperties": false}),
                "Record<string, never>",
            ),
            (
                json!({"type": "object", "properties": {"a-b": {"type": "string"}, "c": {"type": "array", "items": {"properties": {"x": {}}, "additionalProperties": false}}}, "required": ["c"], "additionalProperties": false}),
                "{ \"a-b\"?: string; c: { x?: unknown }[] }",
            ),
        ] {
            assert_eq!(typed(&schema, 0), want, "{schema}");
        }
    }

    #[test]
    fn a_description_ends_no_comment() {
        assert_eq!(comment("a */ b\n c"), "    /** a * / b c */\n");
    }
}
