//! Tool schemas in Gemini's form: a subset of OpenAPI's, not JSON Schema's.

use outrigger_protocol::Object;
use serde_json::{Value, json};

/// Returns the schema of a tool's parameters; `None` if the tool takes no arguments, as an empty object is refused.
pub(crate) fn parameters(schema: &Value) -> Option<Value> {
    let empty = schema.get("type") == Some(&json!("object"))
        && schema
            .get("properties")
            .and_then(Value::as_object)
            .is_none_or(Object::is_empty)
        && schema
            .get("additionalProperties")
            .is_none_or(|more| *more == json!(false));
    (!empty).then(|| convert(&sanitised(schema)))
}

/// Fixes what Gemini refuses, by OpenCode's rules: enumerations contain strings, a list defines its items, only
/// existing fields are required, and what is not an object has no fields.
fn sanitised(schema: &Value) -> Value {
    let Value::Object(map) = schema else {
        return match schema {
            Value::Array(items) => items.iter().map(sanitised).collect(),
            other => other.clone(),
        };
    };
    let mut out: Object = map
        .iter()
        .map(|(key, value)| (key.clone(), sanitised(value)))
        .collect();
    if let Some(Value::Array(values)) = out.get_mut("enum") {
        for value in values.iter_mut().filter(|v| !v.is_string()) {
            *value = value.to_string().into();
        }
        if matches!(out.get("type"), Some(Value::String(kind)) if kind == "integer" || kind == "number")
        {
            out.insert("type".into(), "string".into());
        }
    }
    let kind = out
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    if let (Some(Value::Object(fields)), Some(Value::Array(required))) =
        (out.get("properties").cloned(), out.get_mut("required"))
    {
        required.retain(|name| name.as_str().is_some_and(|n| fields.contains_key(n)));
    }
    let combined = ["anyOf", "oneOf", "allOf"]
        .iter()
        .any(|key| out.contains_key(*key));
    if kind == "array" && !combined {
        let items = out.entry("items").or_insert_with(|| json!({}));
        if let Some(items) = items.as_object_mut()
            && ![
                "type",
                "$ref",
                "anyOf",
                "oneOf",
                "allOf",
                "enum",
                "properties",
                "items",
            ]
            .iter()
            .any(|key| items.contains_key(*key))
        {
            items.insert("type".into(), "string".into());
        }
    }
    if !kind.is_empty() && kind != "object" && !combined {
        out.shift_remove("properties");
        out.shift_remove("required");
    }
    out.into()
}

/// Keeps only the keywords that the API knows, by the rules of the AI SDK.
fn convert(schema: &Value) -> Value {
    let Some(map) = schema.as_object() else {
        // `true` and `false` are schemas too.
        return json!({"type": "boolean", "properties": {}});
    };
    let mut out = Object::new();
    for key in ["description", "required", "format"] {
        if let Some(value) = map.get(key) {
            out.insert(key.into(), value.clone());
        }
    }
    if let Some(value) = map.get("const") {
        out.insert("enum".into(), json!([value]));
    }
    match map.get("type") {
        Some(Value::Array(kinds)) => types(kinds, &mut out),
        Some(kind) => {
            out.insert("type".into(), kind.clone());
        }
        None => {}
    }
    if let Some(values) = map.get("enum") {
        out.insert("enum".into(), values.clone());
    }
    if let Some(Value::Object(fields)) = map.get("properties") {
        let fields: Object = fields
            .iter()
            .map(|(name, field)| (name.clone(), convert(field)))
            .collect();
        out.insert("properties".into(), fields.into());
    }
    match map.get("items") {
        Some(Value::Array(items)) => {
            out.insert("items".into(), items.iter().map(convert).collect());
        }
        Some(items) => {
            out.insert("items".into(), convert(items));
        }
        None => {}
    }
    for key in ["allOf", "oneOf"] {
        if let Some(Value::Array(parts)) = map.get(key) {
            out.insert(key.into(), parts.iter().map(convert).collect());
        }
    }
    if let Some(Value::Array(parts)) = map.get("anyOf") {
        any_of(parts, &mut out);
    }
    if let Some(length) = map.get("minLength") {
        out.insert("minLength".into(), length.clone());
    }
    out.into()
}

// `null` among the types has its own keyword.
fn types(kinds: &[Value], out: &mut Object) {
    let rest: Vec<&Value> = kinds.iter().filter(|k| **k != json!("null")).collect();
    if rest.is_empty() {
        out.insert("type".into(), "null".into());
        return;
    }
    let choices: Vec<Value> = rest.iter().map(|kind| json!({"type": kind})).collect();
    out.insert("anyOf".into(), choices.into());
    if rest.len() < kinds.len() {
        out.insert("nullable".into(), true.into());
    }
}

fn any_of(parts: &[Value], out: &mut Object) {
    let null = json!("null");
    let rest: Vec<Value> = parts
        .iter()
        .filter(|part| part.get("type") != Some(&null))
        .map(convert)
        .collect();
    let nullable = rest.len() < parts.len();
    match (nullable, rest.as_slice()) {
        (true, [Value::Object(only)]) => {
            out.insert("nullable".into(), true.into());
            out.extend(only.clone());
        }
        _ => {
            out.insert("anyOf".into(), rest.into());
            if nullable {
                out.insert("nullable".into(), true.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_put_into_the_form_that_the_service_takes() {
        let object = |field: Value| json!({"type": "object", "properties": {"a": field}});
        for (field, want) in [
            (
                json!({"type": "string", "minLength": 1, "pattern": "x", "default": "y"}),
                json!({"type": "string", "minLength": 1}),
            ),
            (
                json!({"type": "integer", "enum": [1, 2]}),
                json!({"type": "string", "enum": ["1", "2"]}),
            ),
            (
                json!({"type": "array"}),
                json!({"type": "array", "items": {"type": "string"}}),
            ),
            (
                json!({"type": ["string", "null"]}),
                json!({"anyOf": [{"type": "string"}], "nullable": true}),
            ),
            (
                json!({"anyOf": [{"type": "number"}, {"type": "null"}]}),
                json!({"nullable": true, "type": "number"}),
            ),
            (json!({"const": "x"}), json!({"enum": ["x"]})),
            (
                json!({"type": "string", "properties": {}, "required": ["b"]}),
                json!({"type": "string"}),
            ),
            (
                json!({"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b", "gone"], "additionalProperties": false}),
                json!({"required": ["b"], "type": "object", "properties": {"b": {"type": "string"}}}),
            ),
        ] {
            assert_eq!(
                parameters(&object(field.clone())),
                Some(object(want)),
                "{field}"
            );
        }
        assert_eq!(
            parameters(&json!({"type": "object", "properties": {}})),
            None
        );
        assert!(
            parameters(&json!({"type": "object", "additionalProperties": {"type": "string"}}))
                .is_some()
        );
    }
}
