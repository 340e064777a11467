//! `GET /doc`: an OpenAPI document of the routes, made from one table of them (`doc.txt`), one of what they take and answer
//! (`doc/bodies.txt`) and one of the forms that these name (`doc/forms.txt`). The tests hold every answer of ours that they
//! see against it.
//!
//! Names and forms are those of OpenCode's API of the same version.

mod form;

use std::collections::BTreeMap;

use axum::Json;
use serde_json::{Map, Value, json};

/// Method, path, name (that of the published client's method) and what it is for, sorted by path.
const TABLE: &str = include_str!("doc.txt");

/// Name of a form and the form, lines that begin with white space going on with the one before.
const FORMS: &str = include_str!("doc/forms.txt");

/// Name of a route, after `?` the parameters of its query or in parentheses its body, and what it answers: a form, `stream` with the form of its events, `text`, or
/// `nothing`.
const BODIES: &str = include_str!("doc/bodies.txt");

/// The entries of a table with long lines.
fn entries(table: &'static str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in table.lines() {
        match found.last_mut() {
            Some(last) if line.starts_with(' ') => {
                last.push(' ');
                last.push_str(line.trim());
            }
            _ => found.push(line.to_owned()),
        }
    }
    found
}

struct Body {
    query: Option<Value>,
    takes: Option<Value>,
    /// Kind of content and its form.
    answers: Option<(&'static str, Value)>,
}

/// What the routes take and answer, by their names.
fn bodies() -> BTreeMap<String, Body> {
    let read = |entry: &String| {
        let (head, answer) = entry.split_once(" -> ")?;
        let (name, query) = match head.split_once(" ?") {
            Some((name, query)) => (name, Some(form::schema(query)?)),
            None => (head, None),
        };
        let (name, takes) = match name.split_once(" (") {
            Some((name, takes)) => (name, Some(form::schema(takes.strip_suffix(')')?)?)),
            None => (name, None),
        };
        let answers = match answer.strip_prefix("stream ") {
            Some(event) => Some(("text/event-stream", form::schema(event)?)),
            None if answer == "nothing" => None,
            None if answer == "text" => Some(("text/plain", json!({ "type": "string" }))),
            None => Some(("application/json", form::schema(answer)?)),
        };
        let body = Body {
            query,
            takes,
            answers,
        };
        Some((name.to_owned(), body))
    };
    entries(BODIES).iter().filter_map(read).collect()
}

/// The forms that have names.
fn forms() -> Map<String, Value> {
    let read = |entry: &String| {
        let (name, form) = entry.split_once(" = ")?;
        Some((name.to_owned(), form::schema(form)?))
    };
    entries(FORMS).iter().filter_map(read).collect()
}

struct Route {
    method: String,
    path: &'static str,
    name: &'static str,
    summary: &'static str,
}

fn routes() -> impl Iterator<Item = Route> {
    TABLE.lines().filter_map(|line| {
        let mut words = line.splitn(4, ' ');
        Some(Route {
            method: words.next()?.to_ascii_lowercase(),
            path: words.next()?,
            name: words.next()?,
            summary: words.next()?,
        })
    })
}

pub(crate) async fn document() -> Json<Value> {
    Json(openapi())
}

/// The OpenAPI document that `GET /doc` answers.
#[must_use]
pub fn openapi() -> Value {
    let (mut paths, bodies) = (Map::new(), bodies());
    for route in routes() {
        let entry = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Some(methods) = entry.as_object_mut() {
            methods.insert(
                route.method.clone(),
                operation(&route, bodies.get(route.name)),
            );
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Outrigger",
            "description": "The HTTP API of an Outrigger server, in the form of OpenCode's.",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "paths": paths,
        "components": { "schemas": forms() },
    })
}

fn operation(route: &Route, body: Option<&Body>) -> Value {
    let mut parameters: Vec<Value> = places(route.path)
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    if !route.path.starts_with("/global/") && route.path != "/doc" {
        parameters.push(json!({
            "name": "directory", "in": "query", "schema": { "type": "string" },
            "description": "Folder whose agent is asked; that of the server when left out",
        }));
    }
    let query = body.and_then(|body| body.query.as_ref());
    let fields = query.and_then(|query| query["properties"].as_object());
    for (name, schema) in fields.into_iter().flatten() {
        let needed = query.and_then(|query| query["required"].as_array());
        let required = needed.is_some_and(|names| names.iter().any(|needed| needed == name));
        parameters
            .push(json!({ "name": name, "in": "query", "required": required, "schema": schema }));
    }
    let error = json!({
        "description": "An error",
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } },
    });
    let mut answer = json!({ "description": "What was asked for" });
    let mut operation = json!({
        "operationId": route.name,
        "summary": route.summary,
        "parameters": parameters,
    });
    if let (Some((kind, schema)), Some(fields)) = (
        body.and_then(|body| body.answers.as_ref()),
        answer.as_object_mut(),
    ) {
        let schema = json!({ "schema": schema });
        fields.insert("content".to_owned(), json!({ *kind: schema }));
    }
    if let Some(fields) = operation.as_object_mut() {
        if let Some(schema) = body.and_then(|body| body.takes.as_ref()) {
            // One without a field that has to be there may be left out.
            let required = schema.get("required").is_some() || schema.get("properties").is_none();
            let content = json!({ "application/json": { "schema": schema } });
            let body = json!({ "required": required, "content": content });
            fields.insert("requestBody".to_owned(), body);
        }
        let responses = json!({ "2XX": answer, "4XX": error, "5XX": error });
        fields.insert("responses".to_owned(), responses);
    }
    operation
}

/// Names in braces.
fn places(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter_map(|step| step.strip_prefix('{')?.strip_suffix('}'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// A path with its parameters' names left out: the router has shorter ones.
    fn plain(path: &str) -> String {
        let steps = path
            .split('/')
            .map(|step| if step.starts_with('{') { "{}" } else { step });
        steps.collect::<Vec<_>>().join("/")
    }

    /// What stands in the parentheses that `text` begins after.
    fn inside(text: &str) -> &str {
        let mut depth = 1;
        let end = text.find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        });
        &text[..end.unwrap()]
    }

    /// Method and path of every route that a file registers.
    fn registered(text: &str, out: &mut BTreeSet<(String, String)>) {
        let product = text.split("#[cfg(test)]").next().unwrap();
        for call in product.split(".route(").skip(1).map(inside) {
            let path = call.split('"').nth(1).unwrap();
            let handlers = call.rsplit('"').next().unwrap();
            // Routes with a fixed effect are made by a helper.
            let handlers = handlers.replace(" fixed(", " post(");
            let fixed = call.contains("fixed(").then_some("post");
            let methods = ["get", "post", "put", "patch", "delete"];
            let named = methods.into_iter().filter(|method| {
                let word = format!("{method}(");
                let before = |at: usize| handlers[..at].chars().next_back();
                handlers
                    .match_indices(&word)
                    .any(|(at, _)| before(at).is_none_or(|c| !c.is_alphanumeric() && c != '_'))
            });
            for method in named.chain(fixed) {
                out.insert((method.to_owned(), plain(path)));
            }
        }
    }

    #[test]
    fn the_table_has_the_routes_that_there_are() {
        let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut there = BTreeSet::new();
        let mut folders = vec![sources];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|kind| kind == "rs") {
                    registered(&std::fs::read_to_string(path).unwrap(), &mut there);
                }
            }
        }
        let described: BTreeSet<_> = routes()
            .map(|route| (route.method, plain(route.path)))
            .collect();
        assert!(described.len() > 100);
        let missing: Vec<_> = there.difference(&described).collect();
        let gone: Vec<_> = described.difference(&there).collect();
        assert!(
            missing.is_empty() && gone.is_empty(),
            "not described: {missing:?}, not there: {gone:?}"
        );
    }

    /// Every name that a schema refers to.
    fn references<'v>(value: &'v Value, out: &mut BTreeSet<&'v str>) {
        match value {
            Value::Object(fields) => {
                let name = fields.get("$ref").and_then(Value::as_str);
                out.extend(name.map(|name| name.strip_prefix("#/components/schemas/").unwrap()));
                fields.values().for_each(|value| references(value, out));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, out)),
            _ => {}
        }
    }

    #[tokio::test]
    async fn every_form_is_there_and_used() {
        assert_eq!(entries(FORMS).len(), forms().len());
        assert_eq!(entries(BODIES).len(), bodies().len());
        let routed: BTreeSet<_> = routes().map(|route| route.name.to_owned()).collect();
        assert_eq!(bodies().into_keys().collect::<BTreeSet<_>>(), routed);
        let Json(document) = document().await;
        let mut used = BTreeSet::new();
        references(&document, &mut used);
        let there: BTreeSet<_> = document["components"]["schemas"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(used, there);
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                let answer = &operation["responses"]["2XX"];
                assert!(answer["description"].is_string(), "{method} {path}");
                let takes = operation.get("requestBody");
                assert!(method != "get" || takes.is_none(), "{path}");
                if let Some(body) = takes {
                    assert!(
                        body["content"]["application/json"]["schema"].is_object(),
                        "{path}"
                    );
                    assert!(body["required"].is_boolean(), "{path}");
                }
            }
        }
        assert!(FORMS.is_ascii() && BODIES.is_ascii());
    }

    #[tokio::test]
    async fn the_document_has_each_of_them_once() {
        let Json(document) = document().await;
        let paths = document["paths"].as_object().unwrap();
        let count: usize = paths.values().map(|p| p.as_object().unwrap().len()).sum();
        assert_eq!(count, TABLE.lines().count());
        let message = &paths["/session/{sessionID}/message/{messageID}"]["get"];
        let parameters = message["parameters"].as_array().unwrap().iter();
        let parameters: Vec<_> = parameters.map(|one| (&one["name"], &one["in"])).collect();
        assert_eq!(
            json!(parameters),
            json!([
                ["sessionID", "path"],
                ["messageID", "path"],
                ["directory", "query"]
            ])
        );
        let names: BTreeSet<_> = routes().map(|route| route.name).collect();
        assert_eq!(names.len(), count);
        assert!(TABLE.is_ascii());
    }
}
