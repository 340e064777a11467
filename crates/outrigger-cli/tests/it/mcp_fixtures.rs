//! The MCP project's own conformance suite against `outrigger-mcp-server` with the tools, resources and prompts of the suite's
//! scenarios: features that a coding agent lacks but its protocol carries.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, StreamExt as _, pending};
use outrigger_mcp_server::{Backend, Exchange, Level};
use outrigger_server::Guard;
use serde_json::{Value, json};

use crate::mcp_conformance::suite;
use crate::support::*;

const LOOPBACK: &str = "127.0.0.1";
const PAUSE: Duration = Duration::from_millis(50);
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

struct Fixtures;

fn text(text: impl Into<String>) -> Value {
    json!({"type": "text", "text": text.into()})
}

fn image() -> Value {
    json!({"type": "image", "data": PNG, "mimeType": "image/png"})
}

fn resource(uri: &str, kind: &str, text: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}})
}

fn content(content: impl Into<Vec<Value>>) -> Value {
    json!({"content": content.into()})
}

/// Returns the schema of a tool without arguments, except for the tool that is about schemas.
fn schema(tool: &str) -> Value {
    match tool {
        "json_schema_2020_12_tool" => json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
            "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
            "additionalProperties": false,
        }),
        _ => json!({"type": "object"}),
    }
}

fn one_of(choices: &[(&str, &str)]) -> Value {
    let choice = |(value, title): &(&str, &str)| json!({"const": value, "title": title});
    choices.iter().map(choice).collect()
}

/// Returns the form that each tool shows to the client's user.
fn form(tool: &str) -> Option<Value> {
    let string = || json!({"type": "string"});
    let options = || json!({"type": "string", "enum": ["option1", "option2", "option3"]});
    let titled = [("value1", "First Option"), ("value2", "Second Option")];
    Some(match tool {
        "test_elicitation" => json!({
            "type": "object", "properties": {"username": string(), "email": string()}, "required": ["username", "email"],
        }),
        "test_elicitation_sep1034_defaults" => json!({"type": "object", "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": true},
        }}),
        "test_elicitation_sep1330_enums" => json!({"type": "object", "properties": {
            "untitledSingle": options(),
            "titledSingle": {"type": "string", "oneOf": one_of(&titled)},
            "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
            "untitledMulti": {"type": "array", "items": options()},
            "titledMulti": {"type": "array", "items": {"anyOf": one_of(&titled)}},
        }}),
        _ => return None,
    })
}

const TOOLS: [&str; 14] = [
    "json_schema_2020_12_tool",
    "test_audio_content",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_embedded_resource",
    "test_error_handling",
    "test_image_content",
    "test_multiple_content_types",
    "test_sampling",
    "test_simple_text",
    "test_tool_with_logging",
    "test_tool_with_progress",
    "test_nothing",
];

async fn called(exchange: &Exchange, tool: &str, arguments: &Value) -> Result<Value, String> {
    if let Some(form) = form(tool) {
        let message = arguments["message"].as_str().unwrap_or("Please");
        let asked = json!({"message": message, "requestedSchema": form});
        let answer = exchange.elicit(asked).await?;
        return Ok(content([text(format!("Elicitation completed: {answer}"))]));
    }
    Ok(content(match tool {
        "test_simple_text" => vec![text("This is a simple text response for testing.")],
        "test_image_content" => vec![image()],
        "test_audio_content" => {
            vec![json!({"type": "audio", "data": WAV, "mimeType": "audio/wav"})]
        }
        "test_embedded_resource" => vec![resource(
            "test://embedded-resource",
            "text/plain",
            "Embedded.",
        )],
        "test_multiple_content_types" => vec![
            text("Multiple content types test:"),
            image(),
            resource(
                "test://mixed-content-resource",
                "application/json",
                r#"{"test":"data","value":123}"#,
            ),
        ],
        "test_error_handling" => {
            let mut failed =
                content([text("This tool intentionally returns an error for testing")]);
            failed["isError"] = true.into();
            return Ok(failed);
        }
        "test_tool_with_logging" => {
            for said in ["started", "processing data", "completed"] {
                exchange.log(Level::Info, "fixtures", json!(format!("Tool {said}")));
                tokio::time::sleep(PAUSE).await;
            }
            vec![text("Logged.")]
        }
        "test_tool_with_progress" => {
            for progress in [0, 50, 100] {
                exchange.progress(progress, Some(100), None);
                tokio::time::sleep(PAUSE).await;
            }
            vec![text("Done.")]
        }
        "test_sampling" => {
            let prompt = arguments["prompt"].as_str().unwrap_or_default();
            let asked =
                json!({"messages": [{"role": "user", "content": text(prompt)}], "maxTokens": 100});
            let answer = exchange.sample(asked).await?;
            vec![text(format!("LLM response: {}", answer["content"]["text"]))]
        }
        other => return Err(format!("there is no tool {other}")),
    }))
}

impl Backend for Fixtures {
    fn instructions(&self) -> String {
        "Fixtures.".to_owned()
    }

    fn tools<'a>(&'a self) -> BoxFuture<'a, Vec<Value>> {
        let tool =
            |name: &&str| json!({"name": name, "description": name, "inputSchema": schema(name)});
        Box::pin(std::future::ready(TOOLS.iter().map(tool).collect()))
    }

    fn call<'a>(
        &'a self,
        exchange: &'a Exchange,
        tool: &'a str,
        arguments: Value,
    ) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async move { called(exchange, tool, &arguments).await })
    }

    fn prompts<'a>(&'a self) -> BoxFuture<'a, Vec<Value>> {
        let prompt = |(name, arguments): (&str, &[&str])| {
            let argument =
                |name: &&str| json!({"name": name, "description": name, "required": true});
            let arguments: Vec<Value> = arguments.iter().map(argument).collect();
            json!({"name": name, "description": name, "arguments": arguments})
        };
        let prompts: [(&str, &[&str]); 4] = [
            ("test_simple_prompt", &[]),
            ("test_prompt_with_arguments", &["arg1", "arg2"]),
            ("test_prompt_with_embedded_resource", &["resourceUri"]),
            ("test_prompt_with_image", &[]),
        ];
        Box::pin(std::future::ready(prompts.map(prompt).to_vec()))
    }

    fn prompt<'a>(
        &'a self,
        name: &'a str,
        arguments: Value,
    ) -> BoxFuture<'a, Result<Value, String>> {
        let argument = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
        let said = match name {
            "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
            "test_prompt_with_arguments" => {
                let (first, second) = (argument("arg1"), argument("arg2"));
                vec![text(format!(
                    "Prompt with arguments: arg1='{first}', arg2='{second}'"
                ))]
            }
            "test_prompt_with_embedded_resource" => vec![
                resource(
                    &argument("resourceUri"),
                    "text/plain",
                    "Embedded resource content for testing.",
                ),
                text("Please process the embedded resource above."),
            ],
            "test_prompt_with_image" => vec![image(), text("Please analyze the image above.")],
            other => {
                let error = format!("there is no prompt {other}");
                return Box::pin(std::future::ready(Err(error)));
            }
        };
        let message = |content: Value| json!({"role": "user", "content": content});
        let messages: Vec<Value> = said.into_iter().map(message).collect();
        Box::pin(std::future::ready(Ok(json!({"messages": messages}))))
    }

    fn resources<'a>(&'a self) -> BoxFuture<'a, Vec<Value>> {
        let resource = |name: &str| json!({"uri": format!("test://{name}"), "name": name, "description": name});
        let resources = ["static-text", "static-binary", "watched-resource"].map(resource);
        Box::pin(std::future::ready(resources.to_vec()))
    }

    fn templates(&self) -> Vec<Value> {
        vec![
            json!({"uriTemplate": "test://template/{id}/data", "name": "data", "mimeType": "application/json"}),
        ]
    }

    fn read<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<Value, String>> {
        let mut contents = json!({"uri": uri, "mimeType": "text/plain"});
        let between = uri
            .strip_prefix("test://template/")
            .and_then(|rest| rest.strip_suffix("/data"));
        match (uri, between) {
            ("test://static-binary", _) => {
                contents["mimeType"] = "image/png".into();
                contents["blob"] = PNG.into();
            }
            ("test://static-text" | "test://watched-resource", _) => {
                contents["text"] = "Static.".into()
            }
            (_, Some(id)) => contents["text"] = json!({"id": id}).to_string().into(),
            _ => {
                return Box::pin(std::future::ready(Err(format!(
                    "there is no resource {uri}"
                ))));
            }
        }
        Box::pin(std::future::ready(Ok(json!({"contents": [contents]}))))
    }

    fn changes(&self) -> Option<BoxStream<'static, String>> {
        Some(pending().boxed())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_server_scenario_passes() {
    let Some(mut suite) = suite() else { return };
    let listening = outrigger_server::listen(LOOPBACK, Some(free_port().parse().unwrap()));
    let listening = listening.await.unwrap();
    let url = format!("http://{}/mcp", listening.address);
    let guard = Guard {
        login: None,
        hostname: LOOPBACK.to_owned(),
        hosts: Vec::new(),
        cors: Vec::new(),
        has_pages: false,
        page: None,
    };
    let router = guard.around(outrigger_mcp_server::http::router(Arc::new(Fixtures)));
    let serving = tokio::spawn(listening.serve_router(router, std::future::pending()));
    suite.args(["server", "--suite", "all", "--url", &url]);
    let output = tokio::task::spawn_blocking(move || suite.output());
    let output = output.await.unwrap().unwrap();
    serving.abort();
    let said = String::from_utf8_lossy(&output.stdout);
    let more = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{more}");
}
