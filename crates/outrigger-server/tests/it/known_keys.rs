//! Every key that `GET /doc` names in a body or a query is read: with a value of the wrong type the request is refused. A
//! key unknown to a handler would be dropped silently, and the request carried out without it.

use serde_json::{Map, Value, json};

use crate::openapi::DOCUMENT;
use crate::support::World;

/// A route handled before this router, and a value that is logged whatever it is.
const LEFT_OUT: [&str; 5] = [
    "global.upgrade target",
    "app.log extra",
    // A route of `outrigger serve`; see `serve_folders.rs` of the command.
    "experimental.controlPlane.moveSession sessionID",
    "experimental.controlPlane.moveSession destination",
    "experimental.controlPlane.moveSession moveChanges",
];

fn resolved(schema: &Value) -> &Value {
    match schema["$ref"].as_str() {
        Some(name) => DOCUMENT.pointer(name.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

/// Returns a minimal value that matches the schema.
fn sample(schema: &Value) -> Value {
    let schema = resolved(schema);
    if let Some(first) = schema["anyOf"].as_array().and_then(|all| all.first()) {
        return sample(first);
    }
    if let Some(value) = schema.get("const").or_else(|| schema["enum"].get(0)) {
        return value.clone();
    }
    match schema["type"].as_str() {
        Some("string") => json!("x"),
        Some("number" | "integer") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        _ => {
            let needed = schema["required"].as_array().cloned().unwrap_or_default();
            let fields = needed.iter().map(|key| {
                let key = key.as_str().unwrap();
                (key.to_owned(), sample(&schema["properties"][key]))
            });
            Value::Object(fields.collect::<Map<_, _>>())
        }
    }
}

/// Returns a value that violates the schema, or `None` if every value matches.
fn wrong(schema: &Value) -> Option<Value> {
    let schema = resolved(schema);
    match schema["type"].as_str() {
        Some("number" | "integer" | "boolean") => Some(json!("junk")),
        Some(_) => Some(json!(7)),
        None if schema.as_object().is_none_or(Map::is_empty) => None,
        None => Some(json!(7)),
    }
}

fn filled(path: &str) -> String {
    path.split('/')
        .map(|step| if step.starts_with('{') { "x" } else { step })
        .collect::<Vec<_>>()
        .join("/")
}

/// Returns for each key its name, the address and the body to send.
fn tries(path: &str, operation: &Value) -> Vec<(String, String, Option<String>)> {
    let (name, path) = (operation["operationId"].as_str().unwrap(), filled(path));
    let mut found = Vec::new();
    if let Some(schema) = operation.pointer("/requestBody/content/application~1json/schema") {
        let schema = resolved(schema);
        for (key, of_key) in schema["properties"].as_object().into_iter().flatten() {
            if let Some(wrong) = wrong(of_key) {
                let mut body = sample(schema);
                body[key] = wrong;
                found.push((
                    format!("{name} {key}"),
                    path.clone(),
                    Some(body.to_string()),
                ));
            }
        }
    }
    let parameters = operation["parameters"].as_array().unwrap();
    let asked: Vec<(&str, &Value)> = parameters
        .iter()
        .filter(|one| one["in"] == "query")
        .map(|one| (one["name"].as_str().unwrap(), one))
        .collect();
    for (key, one) in &asked {
        // Every text is a string.
        if resolved(&one["schema"])["type"] == "string" {
            continue;
        }
        let others: String = asked
            .iter()
            .filter(|(other, one)| other != key && one["required"] == true)
            .map(|(other, one)| match sample(&one["schema"]) {
                Value::String(text) => format!("&{other}={text}"),
                value => format!("&{other}={value}"),
            })
            .collect();
        found.push((
            format!("{name} {key}"),
            format!("{path}?{key}=junk{others}"),
            None,
        ));
    }
    found
}

#[tokio::test]
async fn every_described_key_is_read() {
    let world = World::plain().await;
    let (mut tried, mut dropped) = (0, Vec::new());
    for (path, methods) in DOCUMENT["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            for (key, path, body) in tries(path, operation) {
                if LEFT_OUT.contains(&key.as_str()) {
                    continue;
                }
                let method = method.to_uppercase();
                let answer = world.send(&method, &path, body.as_deref()).await;
                // Unsupported keys are refused whatever their value.
                if !matches!(answer.status.as_u16(), 400 | 501) {
                    dropped.push((key, answer.status.as_u16()));
                }
                tried += 1;
            }
        }
    }
    let names: Vec<&str> = dropped.iter().map(|(key, _)| key.as_str()).collect();
    assert!(names.is_empty(), "{dropped:?}");
    assert!(tried > 80, "{tried}");
}
