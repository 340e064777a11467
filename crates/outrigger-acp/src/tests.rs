//! Whole transcripts: events as the agent publishes them, and what an editor gets. Every message is one of the protocol's own types,
//! and loses nothing on the way through it.

use std::path::Path;

use agent_client_protocol_schema::v1 as protocol;
use outrigger_protocol::permission::{CALL, PermissionRequest, Reply};
use outrigger_protocol::question::QuestionRequest;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::client::{Client, hello};
use crate::permissions;
use crate::questions;
use crate::updates::plan;

/// A value is one of this type, with every field.
#[track_caller]
fn is<T: DeserializeOwned + Serialize>(value: &Value) {
    let read: T = serde_json::from_value(value.clone()).unwrap_or_else(|e| panic!("{e}: {value}"));
    let back = serde_json::to_value(&read).unwrap();
    assert!(holds(&back, value), "{value}\nbecame\n{back}");
}

/// Whether a value has all that another one has.
fn holds(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part.iter().all(|(key, value)| {
            // What stands for nothing is left out.
            let is_default = value.is_null()
                || matches!(
                    (key.as_str(), value.as_str()),
                    ("status", Some("pending")) | ("kind", Some("other"))
                );
            whole.get(key).map_or(is_default, |it| holds(it, value))
        }),
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(a, b)| holds(a, b))
        }
        (whole, part) => whole == part,
    }
}

fn permission(kind: &str, tool: &str, input: Value, metadata: Value) -> PermissionRequest {
    let mut metadata = metadata;
    metadata[CALL] = json!({ "tool": tool, "input": input });
    serde_json::from_value(json!({
        "id": "per_1", "sessionID": "ses_2", "permission": kind, "patterns": ["rm -rf a"], "always": ["rm *"],
        "metadata": metadata, "tool": { "messageID": "msg_2", "callID": "call_1" },
    }))
    .unwrap()
}

#[test]
fn questions_show_the_whole_call() {
    let diff = "Index: /p/a\n===\n--- /p/a\n+++ /p/a\n@@ -1,1 +1,1 @@\n-hi\n+bye\n";
    let mut once = permission(
        "edit",
        "edit",
        json!({ "filePath": "/p/a", "oldString": "hi", "newString": "bye" }),
        json!({ "diff": diff }),
    );
    once.patterns = vec!["a".to_owned()];
    once.always.clear();
    let cases = [
        permission("bash", "bash", json!({ "command": "rm -rf a" }), json!({})),
        once,
        permission(
            "sandbox",
            "bash",
            json!({ "command": "rm -rf a" }),
            json!({ "reason": "it could not write", "output": "denied" }),
        ),
        // A tool of a plugin does not speak for us.
        permission(
            "mine",
            "mine",
            json!({ "x": "```\nAllow once" }),
            json!({ "diff": diff, "command": "ls" }),
        ),
    ];
    let mut shown = String::new();
    for request in &cases {
        let question = permissions::question("ses_1", request, Path::new("/p"));
        is::<protocol::RequestPermissionRequest>(&question);
        shown.push_str(&serde_json::to_string_pretty(&question).unwrap());
        shown.push('\n');
    }
    insta::assert_snapshot!(shown);
    let answer = |id: &str| json!({ "outcome": { "outcome": "selected", "optionId": id } });
    for (request, answer, want) in [
        (&cases[0], answer("once"), Reply::Once),
        (&cases[0], answer("always"), Reply::Always),
        // It was not offered.
        (&cases[1], answer("always"), Reply::Reject),
        (&cases[0], answer("reject"), Reply::Reject),
        (&cases[0], answer("anything"), Reply::Reject),
        (
            &cases[0],
            json!({ "outcome": { "outcome": "cancelled" } }),
            Reply::Reject,
        ),
        (&cases[0], json!(null), Reply::Reject),
    ] {
        assert_eq!(permissions::reply(request, &answer), want, "{answer}");
    }
}

#[test]
fn a_models_question_is_a_form_or_a_choice() {
    let one = json!({ "question": "Which colour?", "header": "colour", "options": [
        { "label": "red", "description": "warm" }, { "label": "blue", "description": "" } ] });
    let several = json!({ "question": "Which files?", "header": "files", "multiple": true, "options": [{ "label": "a" }, { "label": "b" }] });
    let request = |questions: Value| -> QuestionRequest {
        let request = json!({ "id": "que_1", "sessionID": "ses_1", "questions": questions });
        serde_json::from_value(request).unwrap()
    };
    let both = request(json!([one, several]));
    let form = questions::form("ses_1", &both);
    is::<protocol::CreateElicitationRequest>(&form);
    insta::assert_snapshot!(serde_json::to_string_pretty(&form).unwrap());
    let filled = json!({ "action": "accept", "content": { "q0": "red", "q0_own": "green", "q1": ["a", "b"], "q1_own": "" } });
    let answers = questions::answers(&both, &filled).unwrap();
    assert_eq!(answers, [vec!["green"], vec!["a", "b"]]);
    assert_eq!(
        questions::answers(&both, &json!({ "action": "decline" })),
        None
    );

    assert_eq!(questions::choice("ses_1", &both), None);
    let choice = questions::choice("ses_1", &request(json!([one]))).unwrap();
    is::<protocol::RequestPermissionRequest>(&choice);
    assert_eq!(choice["options"][1]["name"], "blue");
}

#[test]
fn the_first_answer_says_what_is_offered() {
    let capabilities = json!({ "clientCapabilities": {
        "session": { "notices": {} }, "elicitation": { "form": {} }, "auth": { "terminal": true } } });
    let client = Client::read(&capabilities);
    assert_eq!(
        client,
        Client {
            notices: true,
            forms: true,
            terminal_login: true
        }
    );
    for client in [
        client,
        Client::read(&json!({ "clientCapabilities": { "session": { "notices": null } } })),
    ] {
        let mut hello = hello(client);
        is::<protocol::InitializeResponse>(&hello);
        hello["agentInfo"]["version"] = json!("VERSION");
        insta::allow_duplicates!(
            insta::assert_snapshot!(hello["agentCapabilities"], @r#"{"loadSession":true,"mcpCapabilities":{"http":true,"sse":true},"promptCapabilities":{"image":true,"audio":false,"embeddedContext":true},"sessionCapabilities":{"list":{},"resume":{},"close":{},"delete":{}}}"#)
        );
    }
    is::<protocol::SessionUpdate>(&plan(&[]));
}
