//! Prompts with an answer in the form of a JSON Schema (`format`). OpenCode's behaviour was recorded
//! (`tests/parity/gold/structured*`); ours validates answers against the schema, OpenCode does not.

use serde_json::{Value, json};

use crate::harness::Harness;
use outrigger_test_support::model::{call, text, turn};

const TOOL: &str = "StructuredOutput";

fn form(retries: Value) -> Value {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "properties": { "answer": { "type": "number" } }, "required": ["answer"], "additionalProperties": false,
    });
    let mut form = json!({ "type": "json_schema", "schema": schema });
    if !retries.is_null() {
        form["retryCount"] = retries;
    }
    form
}

fn prompt(format: &Value) -> Value {
    json!({ "format": format, "parts": [{ "type": "text", "text": "2+2" }] })
}

fn answer(value: Value) -> Value {
    turn([call(TOOL, value)])
}

/// Returns the outcome of a prompt: its answer's value or error, the number of requests to the model, and the outcome
/// of its calls.
async fn outcome(turns: &[Value], retries: Value) -> String {
    let h = Harness::new(turns.to_vec(), json!({})).await;
    let session = h.session().await;
    let path = format!("/session/{session}/message");
    let message = h.ok("POST", &path, prompt(&form(retries))).await;
    for request in h.mock.requests() {
        assert_eq!(request.body["tool_choice"], "required");
        assert!(request.tools().iter().any(|tool| tool == TOOL));
    }
    let calls: Vec<String> = h
        .parts(&session, "tool")
        .await
        .iter()
        .map(|part| {
            let word = |value: &Value| value.as_str().unwrap().to_owned();
            format!("{} {}", word(&part["tool"]), word(&part["state"]["status"]))
        })
        .collect();
    // No separate event reports it, whether it exists or not.
    assert!(h.published("session.error").is_empty());
    h.sees("session.idle", 1).await;
    let info = &message["info"];
    let came = match &info["error"] {
        Value::Null => format!("structured {}", info["structured"]),
        error => format!("{} after {}", error["name"], error["data"]["retries"]),
    };
    let asked = h.mock.requests().len();
    format!("{came}, asked {asked}: {}", calls.join(", "))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_turn_ends_with_an_answer_that_fits() {
    let right = || answer(json!({ "answer": 4 }));
    let wrong = || answer(json!({ "answer": "four" }));
    let broken = || turn([json!({ "name": TOOL, "raw": "{\"answer\": " })]);
    let bash = || call("bash", json!({ "command": "true", "description": "x" }));
    let cases = [
        ("at once", vec![right()], Value::Null),
        (
            "behind some work",
            vec![turn([bash()]), right()],
            Value::Null,
        ),
        (
            "beside some work",
            vec![turn([bash(), call(TOOL, json!({ "answer": 4 }))])],
            Value::Null,
        ),
        (
            "at the third time",
            vec![wrong(), broken(), right()],
            Value::Null,
        ),
        ("never", vec![wrong()], Value::Null),
        ("never, and is not asked again", vec![wrong()], json!(0)),
        ("gives up", vec![wrong(), text("I cannot.")], json!(5)),
        ("says it in words", vec![text("four")], Value::Null),
    ];
    let mut lines = Vec::new();
    for (name, turns, retries) in cases {
        lines.push(format!("{name}: {}", outcome(&turns, retries).await));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
    at once: structured {"answer":4}, asked 1: StructuredOutput completed
    behind some work: structured {"answer":4}, asked 2: bash completed, StructuredOutput completed
    beside some work: structured {"answer":4}, asked 1: bash completed, StructuredOutput completed
    at the third time: structured {"answer":4}, asked 3: StructuredOutput error, invalid completed, StructuredOutput completed
    never: "StructuredOutputError" after 2, asked 3: StructuredOutput error, StructuredOutput error, StructuredOutput error
    never, and is not asked again: "StructuredOutputError" after 0, asked 1: StructuredOutput error
    gives up: "StructuredOutputError" after 1, asked 2: StructuredOutput error
    says it in words: "StructuredOutputError" after 0, asked 1: 
    "#);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_model_gets_and_what_is_stored() {
    let h = Harness::new([answer(json!({ "answer": 4 })), text("so what")], json!({})).await;
    let session = h.session().await;
    let path = format!("/session/{session}/message");
    let mut body = prompt(&form(Value::Null));
    body["system"] = json!("THE-PROMPTS-OWN");
    h.ok("POST", &path, body).await;
    let request = h.mock.last();
    let offered = request.body["tools"].as_array().unwrap().clone();
    let tool = offered
        .iter()
        .find(|tool| tool["function"]["name"] == TOOL)
        .unwrap();
    // Not every provider accepts the key that names the standard.
    let schema = json!({
        "type": "object", "properties": { "answer": { "type": "number" } }, "required": ["answer"], "additionalProperties": false,
    });
    assert_eq!(tool["function"]["parameters"], schema);
    // Names are offered in order, as in OpenCode.
    let mut sorted = request.tools();
    sorted.sort_by_key(|name| name.to_lowercase());
    assert_eq!(request.tools(), sorted);
    let system = request.texts("system").join("\n");
    let (form, own) = (system.find(TOOL).unwrap(), system.find("THE-PROMPTS-OWN"));
    assert!(form < own.unwrap());
    let messages = h.messages(&session).await;
    assert_eq!(messages[0]["info"]["format"]["retryCount"], 2);
    assert_eq!(messages[1]["info"]["structured"], json!({ "answer": 4 }));
    assert_eq!(messages[1]["info"]["finish"], "tool-calls");

    // The next prompt does not ask for it: text, as usual.
    h.prompt(&session, "and now?").await;
    let request = h.mock.last();
    assert_eq!(request.body["tool_choice"], "auto");
    assert!(!request.tools().contains(&TOOL.to_owned()));
    assert!(!request.texts("system").join("").contains(TOOL));
}

/// The step limit removes the tools in the last step, but the answer is still required.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_step_has_the_tool_for_the_answer_only() {
    let bash = turn([call(
        "bash",
        json!({ "command": "true", "description": "x" }),
    )]);
    let config = json!({ "agent": { "build": { "steps": 2 } } });
    let h = Harness::new([bash, answer(json!({ "answer": 4 }))], config).await;
    let session = h.session().await;
    let path = format!("/session/{session}/message");
    let message = h.ok("POST", &path, prompt(&form(Value::Null))).await;
    assert_eq!(message["info"]["structured"], json!({ "answer": 4 }));
    assert_eq!(h.mock.last().tools(), [TOOL]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_nothing_can_be_held_against_is_refused() {
    let h = Harness::new([text("4")], json!({})).await;
    let session = h.session().await;
    for route in ["message", "prompt_async"] {
        let path = format!("/session/{session}/{route}");
        for format in [
            json!({ "type": "yaml" }),
            json!({ "type": "json_schema" }),
            json!({ "type": "json_schema", "schema": true }),
            json!({ "type": "json_schema", "schema": { "type": 5 } }),
            json!({ "type": "json_schema", "schema": { "$ref": "https://example.com/x.json" } }),
            json!({ "type": "json_schema", "schema": {}, "retryCount": -1 }),
        ] {
            let (status, error) = h.call("POST", &path, prompt(&format)).await;
            assert_eq!(status, 400, "{route} {format}: {error}");
        }
    }
    assert!(h.messages(&session).await.is_empty() && h.mock.all_requests().is_empty());
    let path = format!("/session/{session}/message");
    h.ok("POST", &path, prompt(&json!({ "type": "text" })))
        .await;
    assert_eq!(h.mock.last().body["tool_choice"], "auto");
}
