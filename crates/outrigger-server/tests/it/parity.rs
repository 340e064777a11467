//! Answers that enable functions in OpenCode's published client.

use serde_json::{Value, json};

use crate::harness::Harness;
use outrigger_test_support::model::{done, text};

#[tokio::test(flavor = "multi_thread")]
async fn tools_of_a_prompt_are_rules_of_the_session() {
    let h = Harness::new([text("one"), text("two"), text("three")], json!({})).await;
    let id = h.session().await;
    let path = format!("/session/{id}");
    let said = json!([{ "type": "text", "text": "look" }]);
    let rules = async |h: &Harness| h.ok("GET", &path, Value::Null).await["permission"].clone();
    for (tools, want) in [
        (json!(null), json!(null)),
        (
            json!({ "bash": false }),
            json!([{ "permission": "bash", "pattern": "*", "action": "deny" }]),
        ),
        (
            json!({}),
            json!([{ "permission": "bash", "pattern": "*", "action": "deny" }]),
        ),
        (
            json!({ "read": true }),
            json!([{ "permission": "read", "pattern": "*", "action": "allow" }]),
        ),
    ] {
        let mut body = json!({ "parts": said, "noReply": true });
        if !tools.is_null() {
            body["tools"] = tools.clone();
        }
        h.ok("POST", &format!("{path}/message"), body).await;
        assert_eq!(rules(&h).await, want, "{tools}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_begins_with_what_it_is_given() {
    let h = Harness::new([done()], json!({})).await;
    let body = json!({ "agent": "plan", "model": { "id": "m1", "providerID": "mock" }, "metadata": { "k": 1 } });
    let session = h.ok("POST", "/session", body.clone()).await;
    for key in ["agent", "model", "metadata"] {
        assert_eq!(session[key], body[key], "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_in_a_request_are_reported_in_opencodes_form() {
    let h = Harness::new([done()], json!({})).await;
    let entry = |config: Value| json!({ "name": "bad", "config": config });
    let cases = [
        ("POST", "/session", json!({ "parentID": 5 })),
        ("PUT", "/auth/other", json!({ "type": "nonsense" })),
        ("POST", "/mcp", entry(json!({ "type": "nonsense" }))),
        (
            "POST",
            "/mcp",
            entry(json!({ "type": "local", "command": [] })),
        ),
        ("POST", "/mcp", entry(json!({}))),
    ];
    for (method, path, body) in cases {
        let (status, error) = h.call(method, path, body.clone()).await;
        assert_eq!(
            (status, &error["_tag"], &error["name"]),
            (400, &json!("BadRequest"), &json!("BadRequest")),
            "{path} {body}: {error}"
        );
        assert_eq!(error["data"]["kind"], "Payload", "{path} {body}");
        assert!(error["data"]["message"].is_string(), "{path} {body}");
    }
    // An unusable entry is not among the servers.
    assert_eq!(h.ok("GET", "/mcp", Value::Null).await, json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_runs_in_a_session_that_is_not_there() {
    let h = Harness::new([done()], json!({})).await;
    let answer = h.ok("POST", "/session/ses_none/abort", Value::Null).await;
    assert_eq!(answer, json!(true));
}
