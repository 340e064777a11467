//! `GET /doc`: an OpenAPI document of the routes, made from one table of them (`doc.txt`).
//!
//! It says which routes there are, their parameters in the path, and the form of errors. Bodies and answers are those of the
//! reference's API of the same version and are not described.

use axum::Json;
use serde_json::{Map, Value, json};

/// Method, path, name (that of the published client's method) and what it is for, sorted by path.
const TABLE: &str = include_str!("doc.txt");

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
    let mut paths = Map::new();
    for route in routes() {
        let entry = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Some(methods) = entry.as_object_mut() {
            methods.insert(route.method.clone(), operation(&route));
        }
    }
    Json(json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Outrigger",
            "description": "The HTTP API of an Outrigger server, in the form of OpenCode's.",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "paths": paths,
        "components": { "schemas": { "Error": {
            "type": "object",
            "required": ["name", "data"],
            "properties": {
                "name": { "type": "string" },
                "data": { "type": "object", "properties": { "message": { "type": "string" } } },
            },
        } } },
    }))
}

fn operation(route: &Route) -> Value {
    let mut parameters: Vec<Value> = places(route.path)
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    if !route.path.starts_with("/global/") && route.path != "/doc" {
        parameters.push(json!({
            "name": "directory", "in": "query", "schema": { "type": "string" },
            "description": "Folder whose agent is asked; that of the server when left out",
        }));
    }
    let error = json!({
        "description": "An error",
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } },
    });
    json!({
        "operationId": route.name,
        "summary": route.summary,
        "parameters": parameters,
        "responses": { "2XX": { "description": "What was asked for" }, "4XX": error, "5XX": error },
    })
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

    /// What stands in the parentheses that `text` begins behind.
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
        for file in std::fs::read_dir(sources).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|kind| kind == "rs") {
                registered(&std::fs::read_to_string(path).unwrap(), &mut there);
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
