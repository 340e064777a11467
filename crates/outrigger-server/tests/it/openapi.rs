//! Validates every answer in the tests against `GET /doc`.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};

/// The document, created once.
pub(crate) static DOCUMENT: LazyLock<Value> = LazyLock::new(outrigger_server::openapi);

/// Returns the operation of a request.
fn operation<'d>(document: &'d Value, method: &str, path: &str) -> Option<&'d Value> {
    let path: Vec<&str> = path.split(['?', '#']).next()?.split('/').collect();
    let fits = |template: &str| {
        let steps: Vec<&str> = template.split('/').collect();
        let same = |(step, there): (&&str, &&str)| step.starts_with('{') || step == there;
        steps.len() == path.len() && steps.iter().zip(&path).all(same)
    };
    // Literal segments come before parameters.
    let paths = document["paths"].as_object()?;
    let found = paths.iter().filter(|(template, _)| fits(template));
    let best = found.min_by_key(|(template, _)| template.matches('{').count())?;
    best.1.get(method.to_ascii_lowercase())
}

/// Returns how an answer differs from its description, or nothing.
pub(crate) fn faults(
    document: &Value,
    method: &str,
    path: &str,
    status: u16,
    text: &str,
) -> Vec<String> {
    let Some(operation) = operation(document, method, path) else {
        return Vec::new();
    };
    let class = format!("{}XX", status / 100);
    let content = &operation["responses"][&class]["content"];
    let Some(schema) = content.pointer("/application~1json/schema") else {
        return Vec::new();
    };
    let Ok(answer) = serde_json::from_str::<Value>(text) else {
        return vec![format!("no JSON: {text}")];
    };
    let whole = json!({ "components": document["components"], "allOf": [schema] });
    let validator: Validator = jsonschema::validator_for(&whole).unwrap();
    let errors = validator.iter_errors(&answer);
    errors
        .take(5)
        .map(|e| format!("{} at {}", e, e.instance_path()))
        .collect()
}

#[test]
fn a_wrong_answer_is_seen() {
    let answer = |schema: Value| json!({ "responses": { "2XX": { "content": { "application/json": { "schema": schema } } } } });
    let document = json!({
        "components": { "schemas": { "Id": { "type": "string" } } },
        "paths": {
            "/a/{id}": { "get": answer(json!({ "$ref": "#/components/schemas/Id" })) },
            "/a/all": { "get": answer(json!({ "type": "array" })) },
        },
    });
    for (path, status, text, wrong) in [
        ("/a/1?x=/y", 200, "\"id\"", 0),
        ("/a/1", 200, "7", 1),
        ("/a/1", 200, "x", 1),
        ("/a/1", 404, "7", 0),
        ("/a/all", 200, "[]", 0),
        ("/a/all", 200, "\"id\"", 1),
        ("/b", 200, "7", 0),
    ] {
        let found = faults(&document, "GET", path, status, text);
        assert_eq!(found.len(), wrong, "{path} {text}: {found:?}");
    }
}

/// A request omits a required parameter.
#[tokio::test]
async fn a_query_without_what_it_needs_is_refused() {
    let world = crate::support::World::plain().await;
    let mut tried = 0;
    for (path, methods) in DOCUMENT["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().unwrap();
            let needed = |one: &&Value| one["in"] == "query" && one["required"] == true;
            if parameters.iter().any(|one| needed(&one)) {
                let answer = world.send(&method.to_uppercase(), path, None).await;
                assert_eq!(
                    answer.status.as_u16(),
                    400,
                    "{method} {path} {}",
                    answer.text
                );
                tried += 1;
            }
        }
    }
    assert_eq!(tried, 9);
}

/// What the document requires is checked.
#[tokio::test]
async fn a_body_without_what_it_needs_is_refused() {
    let world = crate::support::World::plain().await;
    let mut tried = 0;
    for (path, methods) in DOCUMENT["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let schema = operation.pointer("/requestBody/content/application~1json/schema");
            if schema.is_none_or(|schema| schema.get("required").is_none()) {
                continue;
            }
            let path: Vec<&str> = path
                .split('/')
                .map(|step| if step.starts_with('{') { "x" } else { step })
                .collect();
            let answer = world
                .send(&method.to_uppercase(), &path.join("/"), Some("{}"))
                .await;
            let status = answer.status.as_u16();
            assert!(
                (400..500).contains(&status) || status == 501,
                "{method} {}: {status} {}",
                path.join("/"),
                answer.text
            );
            tried += 1;
        }
    }
    assert!(tried > 20, "{tried}");
}
