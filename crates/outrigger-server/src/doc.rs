//! `GET /doc`: an OpenAPI document of the routes, generated from a table of routes (`doc.txt`), one of requests and
//! responses (`doc/bodies.rs`) and one of the schemas that these name (`doc/forms.rs`). The tests validate every response
//! of ours that they see against it.
//!
//! Names and schemas are those of OpenCode's API of the same version.

mod bodies;
mod forms;

use axum::Json;
use outrigger_schema::json::Writer;
use outrigger_schema::{Field, Schema};
use serde_json::{Map, Value, json};

use self::bodies::Body;

/// Method, path, name (the method of the published client) and description, sorted by path.
const TABLE: &str = include_str!("doc.txt");

const FORMS: Writer = Writer {
    closed: false,
    named: Some("#/components/schemas/"),
};

/// Returns the named schemas.
fn forms() -> Map<String, Value> {
    let form = |(name, schema): &(&str, &Schema)| match schema {
        Schema::Named(_, inner) => ((*name).to_owned(), FORMS.value(inner)),
        other => ((*name).to_owned(), FORMS.value(other)),
    };
    forms::ALL
        .iter()
        .chain(outrigger_api::forms::ALL)
        .map(form)
        .collect()
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

/// Returns the OpenAPI document of `GET /doc`.
#[must_use]
pub fn openapi() -> Value {
    let mut paths = Map::new();
    for route in routes() {
        let entry = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Some(methods) = entry.as_object_mut() {
            let body = bodies::ALL.iter().find(|body| body.name == route.name);
            methods.insert(route.method.clone(), operation(&route, body));
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
    for Field {
        name,
        schema,
        required,
        ..
    } in body.map_or(&[][..], query)
    {
        let schema = FORMS.value(schema);
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
        let schema = json!({ "schema": FORMS.value(schema) });
        fields.insert("content".to_owned(), json!({ *kind: schema }));
    }
    if let Some(fields) = operation.as_object_mut() {
        if let Some(schema) = body.and_then(|body| body.takes.as_ref()) {
            let schema = FORMS.value(schema);
            // A parameter without required fields is optional.
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

fn query(body: &Body) -> &'static [Field] {
    match body.query {
        Some(Schema::Object(fields)) => fields,
        _ => &[],
    }
}

/// Returns the names in braces.
fn places(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter_map(|step| step.strip_prefix('{')?.strip_suffix('}'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Removes the parameter names from a path: the router has shorter ones.
    fn plain(path: &str) -> String {
        path.split('/')
            .map(|step| if step.starts_with('{') { "{}" } else { step })
            .collect::<Vec<_>>()
            .join("/")
    }

    /// Returns the text in the parentheses that `text` starts after.
    fn inside(text: &str) -> &str {
        let mut depth = 1;
        let end = text.find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        });
        &text[..end.unwrap()]
    }

    /// Collects method and path of every route that a file registers.
    fn registered(text: &str, out: &mut BTreeSet<(String, String)>) {
        let product = text.split("#[cfg(test)]").next().unwrap();
        for call in product.split(".route(").skip(1).map(inside) {
            let path = call.split('"').nth(1).unwrap();
            let handlers = call.rsplit('"').next().unwrap();
            // Routes with a fixed effect are created by a helper.
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
                } else if path.ends_with("routes/page.rs") {
                    // The files of the page are not part of the API.
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

    /// Collects every name that a schema refers to.
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
        let named = forms::ALL.len() + outrigger_api::forms::ALL.len();
        assert_eq!(named, forms().len());
        let routed: BTreeSet<_> = routes().map(|route| route.name).collect();
        let described: Vec<_> = bodies::ALL.iter().map(|body| body.name).collect();
        assert_eq!(described.len(), routed.len());
        assert_eq!(described.into_iter().collect::<BTreeSet<_>>(), routed);
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
    }

    #[tokio::test]
    async fn the_document_has_each_of_them_once() {
        let Json(document) = document().await;
        let paths = document["paths"].as_object().unwrap();
        let count: usize = paths.values().map(|p| p.as_object().unwrap().len()).sum();
        assert_eq!(count, TABLE.lines().count());
        let message = &paths["/session/{sessionID}/message/{messageID}"]["get"];
        let parameters: Vec<_> = message["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (&one["name"], &one["in"]))
            .collect();
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
