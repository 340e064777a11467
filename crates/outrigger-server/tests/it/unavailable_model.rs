//! Prompts for an unusable model: stored, published and answered with 500, as in OpenCode (measured with 1.18.33).
//! Otherwise a plugin that waits for its session to be idle would wait forever.

use serde_json::{Value, json};

use crate::harness::Harness;
use outrigger_test_support::model::{call, done, text, turn};

fn prompt(said: &str, provider: &str, model: &str) -> Value {
    json!({
        "parts": [{ "type": "text", "text": said }], "model": { "providerID": provider, "modelID": model },
    })
}

/// Returns the texts of a session's messages with their roles.
async fn said(h: &Harness, session: &str) -> String {
    let messages = h.messages(session).await;
    let line = |message: &Value| {
        let text = message["parts"][0]["text"].as_str().unwrap_or("-");
        format!("{} {text}", message["info"]["role"].as_str().unwrap())
    };
    messages.iter().map(line).collect::<Vec<_>>().join(", ")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_is_kept_and_the_session_is_idle_again() {
    let keyless = json!({ "npm": "@ai-sdk/openai-compatible", "options": { "baseURL": "http://127.0.0.1:9/v1" },
        "env": ["NO_SUCH_KEY"], "models": { "m": {} } });
    let h = Harness::new([done()], json!({})).await;
    let config = json!({ "provider": { "keyless": keyless } });
    let with = Harness::new([done()], config).await;
    for (h, provider, model) in [
        (&h, "nope", "m"),
        (&h, "mock", "nope"),
        (&with, "keyless", "nope"),
    ] {
        let session = h.session().await;
        let path = format!("/session/{session}/message");
        let (from, idle) = (h.kinds().len(), h.published("session.idle").len());
        let (status, error) = h.call("POST", &path, prompt("hi", provider, model)).await;
        assert_eq!(status, 500, "{error}");
        let text = error["data"]["message"].as_str().unwrap();
        assert!(text.contains("`nope`"), "{text}");
        assert_eq!(said(h, &session).await, "user hi");
        // The answer may be here before the last events.
        h.sees("session.idle", idle + 1).await;
        let mut kinds = h.kinds().split_off(from);
        // It may come late.
        kinds.retain(|kind| kind != "session.created");
        kinds.dedup();
        assert_eq!(
            kinds.join(" "),
            "session.updated message.updated message.part.updated session.updated session.status session.error \
             session.status session.idle"
        );
        let published = h.published("session.error").pop().unwrap();
        assert_eq!(published["properties"]["sessionID"], session.as_str());
        assert_eq!(published["properties"]["error"]["data"]["message"], text);
        assert_eq!(h.ok("GET", "/session/status", Value::Null).await, json!({}));
        assert!(h.mock.all_requests().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unavailable_model_is_reported_once_and_the_session_continues() {
    let h = Harness::new([text("here")], json!({})).await;
    let session = h.session().await;
    let path = format!("/session/{session}/prompt_async");
    let (status, _) = h.call("POST", &path, prompt("lost", "nope", "m")).await;
    assert_eq!(status, 204);
    h.sees("session.idle", 1).await;
    // It wants no answer, so no model has to be asked.
    let mut note = prompt("note", "nope", "m");
    note["noReply"] = json!(true);
    let path = format!("/session/{session}/message");
    let noted = h.ok("POST", &path, note).await;
    assert_eq!(noted["info"]["role"], "user");
    h.ok("POST", &path, prompt("again", "mock", "m1")).await;
    assert_eq!(h.published("session.error").len(), 1);
    assert_eq!(
        said(&h, &session).await,
        "user lost, user note, user again, assistant -"
    );
    assert_eq!(h.mock.last().texts("user").join(" "), "lost note again");
}

/// Nothing of a command is kept, as in OpenCode.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_for_such_a_model_leaves_the_session_as_it_was() {
    let config = json!({ "command": { "hi": { "template": "say hi" } } });
    let h = Harness::new([done()], config).await;
    let session = h.session().await;
    let body = json!({ "command": "hi", "arguments": "", "model": "nope/m" });
    let path = format!("/session/{session}/command");
    assert_eq!(h.call("POST", &path, body).await.0, 400);
    assert_eq!(said(&h, &session).await, "");
}

/// The running turn's model is usable; the turn does not end because of the prompt that arrived meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_during_a_turn_is_kept_and_the_turn_goes_on() {
    let wait = call(
        "bash",
        json!({ "command": "while [ ! -e go ]; do sleep 0.02; done", "description": "x" }),
    );
    let h = Harness::new([turn([wait]), text("first answer")], json!({})).await;
    let session = h.session().await;
    h.prompt_async(&session, "first").await;
    let running = async {
        loop {
            let parts = h.parts(&session, "tool").await;
            if parts
                .iter()
                .any(|part| part["state"]["status"] == "running")
            {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    running.await;
    let path = format!("/session/{session}/prompt_async");
    h.call("POST", &path, prompt("second", "nope", "m")).await;
    while h.messages(&session).await.len() < 3 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    std::fs::write(h.path("go"), "").unwrap();
    h.sees("session.idle", 2).await;
    assert_eq!(h.published("session.error").len(), 1);
    let last = h.parts(&session, "text").await;
    let texts: Vec<&str> = last
        .iter()
        .filter_map(|part| part["text"].as_str())
        .collect();
    assert!(
        texts.contains(&"first answer") && texts.contains(&"second"),
        "{texts:?}"
    );
}
