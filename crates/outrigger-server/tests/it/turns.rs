//! Prompts that wait for each other, and turns that are aborted at any moment.

use serde_json::{Value, json};

use crate::harness::Harness;
use outrigger_test_support::model::{call, done, text, turn};

fn bash(command: &str) -> Value {
    call("bash", json!({ "command": command, "description": "x" }))
}

fn texts(messages: &[Value]) -> Vec<String> {
    messages
        .iter()
        .filter_map(|m| m["parts"].as_array())
        .flatten()
        .filter(|p| p["type"] == "text")
        .map(|p| p["text"].as_str().unwrap().to_owned())
        .collect()
}

/// Waits until the session contains these texts.
async fn holds(h: &Harness, session: &str, wanted: &[&str]) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while texts(&h.messages(session).await) != wanted {
        assert!(std::time::Instant::now() < end, "the message is not there");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

async fn allow(h: &Harness, asked: &Value) {
    let id = asked["properties"]["id"].as_str().unwrap();
    let path = format!("/permission/{id}/reply");
    h.ok("POST", &path, json!({ "reply": "once" })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_during_a_turn_is_seen_at_once_and_read_by_its_next_step() {
    let h = Harness::new(
        [turn([bash("true")]), text("one"), text("two")],
        json!({ "permission": { "bash": "ask" } }),
    )
    .await;
    let session = h.session().await;
    h.prompt_async(&session, "first").await;
    let asked = h.sees("permission.asked", 1).await;
    let (second, third, ()) = tokio::join!(
        h.prompt(&session, "second"),
        async {
            holds(&h, &session, &["first", "second"]).await;
            h.prompt(&session, "third").await
        },
        async {
            holds(&h, &session, &["first", "second", "third"]).await;
            assert_eq!(h.mock.requests().len(), 1, "nothing of it is answered yet");
            allow(&h, &asked).await;
        }
    );
    // One answer for all messages.
    assert_eq!(
        (texts(std::slice::from_ref(&second)), texts(&[third])),
        (vec!["one".into()], vec!["one".into()])
    );
    let requests = h.mock.requests();
    let said: Vec<_> = requests.iter().map(|r| r.texts("user")).collect();
    assert_eq!(said, [vec!["first"], vec!["first", "second", "third"]]);
    let messages = h.messages(&session).await;
    let last_said = messages.iter().rfind(|m| m["info"]["role"] == "user");
    assert_eq!(second["info"]["parentID"], last_said.unwrap()["info"]["id"]);
    h.prompt(&session, "fourth").await;
    // Each answer follows its question, though the questions were stored earlier.
    let roles: Vec<_> = h.mock.last().body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["role"].as_str().unwrap().to_owned())
        .filter(|r| r != "system")
        .collect();
    assert_eq!(
        roles.join(" "),
        "user assistant tool user user assistant user"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_wants_no_reply_is_answered_by_the_turn_and_a_mere_note_is_not() {
    let h = Harness::new(
        [
            turn([bash("true")]),
            text("one"),
            text("two"),
            text("three"),
        ],
        json!({ "permission": { "bash": "ask" } }),
    )
    .await;
    let session = h.session().await;
    h.prompt_async(&session, "first").await;
    let asked = h.sees("permission.asked", 1).await;
    // It wants no answer, but gets one while a turn runs, as in OpenCode; a mere note does not.
    for (text, ignored) in [("note", true), ("second", false)] {
        let part = json!({ "type": "text", "text": text, "ignored": ignored });
        let path = format!("/session/{session}/message");
        let body = json!({ "noReply": true, "parts": [part] });
        h.ok("POST", &path, body).await;
    }
    allow(&h, &asked).await;
    h.sees("session.idle", 1).await;
    let messages = h.messages(&session).await;
    let parents: Vec<String> = messages
        .iter()
        .filter(|m| m["info"]["role"] == "assistant")
        .map(|answer| {
            let asked = messages
                .iter()
                .find(|m| m["info"]["id"] == answer["info"]["parentID"]);
            texts(&[asked.unwrap().clone()]).concat()
        })
        .collect();
    assert_eq!(parents, ["first", "second"]);
    assert_eq!(h.mock.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_ends_what_waits_too() {
    let h = Harness::new(
        [json!({ "text": "a long text", "stall": 2 }), done()],
        json!({}),
    )
    .await;
    let session = h.session().await;
    h.prompt_async(&session, "first").await;
    h.sees("message.part.delta", 1).await;
    h.prompt_async(&session, "second").await;
    let end = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while h
        .messages(&session)
        .await
        .iter()
        .filter(|m| m["info"]["role"] == "user")
        .count()
        < 2
    {
        assert!(std::time::Instant::now() < end);
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    h.ok("POST", &format!("/session/{session}/abort"), Value::Null)
        .await;
    h.sees("session.idle", 1).await;
    while h.ok("GET", "/session/status", Value::Null).await != json!({}) {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(h.mock.requests().len(), 1);
    // The part of the answer received so far is kept.
    let texts = h.parts(&session, "text").await;
    assert!(
        texts.iter().any(|part| part["text"] == "a long t"),
        "{texts:?}"
    );
    // The next prompt finds both in the history.
    h.prompt(&session, "third").await;
    assert_eq!(h.mock.last().texts("user"), ["first", "second", "third"]);
}

/// At any point of a turn, an abort ends it, with its last events published and the session free again.
#[tokio::test(flavor = "multi_thread")]
async fn aborted_at_any_moment() {
    let ask = json!({ "permission": { "bash": "ask" } });
    let question = call(
        "question",
        json!({ "questions": [{ "question": "Q", "header": "H", "options": [] }] }),
    );
    let task = call(
        "task",
        json!({ "description": "d", "prompt": "p", "subagent_type": "general" }),
    );
    for (name, first, config, moment) in [
        (
            "before the model speaks",
            json!({ "text": "x", "stall": 0 }),
            json!({}),
            "message.updated",
        ),
        (
            "while it speaks",
            json!({ "text": "some text here", "stall": 2 }),
            json!({}),
            "message.part.delta",
        ),
        (
            "while it writes a call",
            json!({ "tools": [bash("true")], "stall": 2 }),
            json!({}),
            "message.part.updated",
        ),
        (
            "while a tool runs",
            turn([bash("echo begun; sleep 600")]),
            json!({}),
            "message.part.updated",
        ),
        (
            "at a permission question",
            turn([bash("true")]),
            ask,
            "permission.asked",
        ),
        (
            "at a question",
            turn([question]),
            json!({}),
            "question.asked",
        ),
        (
            "while a subagent works",
            turn([task]),
            json!({}),
            "session.created",
        ),
    ] {
        // The mock answers the subagent with a stall.
        let h = Harness::new([first, json!({ "text": "x", "stall": 0 })], config).await;
        let session = h.session().await;
        h.prompt_async(&session, "go").await;
        h.sees(moment, if moment == "session.created" { 2 } else { 1 })
            .await;
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        let abort = format!("/session/{session}/abort");
        assert_eq!(h.ok("POST", &abort, Value::Null).await, json!(true));
        let end = std::time::Instant::now() + std::time::Duration::from_secs(120);
        while h.ok("GET", "/session/status", Value::Null).await != json!({}) {
            assert!(std::time::Instant::now() < end, "{name}: still busy");
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        for message in h.messages(&session).await {
            let info = &message["info"];
            if info["role"] == "assistant" {
                assert_eq!(info["error"]["name"], "MessageAbortedError", "{name}");
                assert!(info["time"]["completed"].is_u64(), "{name}");
            }
            for part in message["parts"].as_array().unwrap() {
                let status = part["state"]["status"].as_str().unwrap_or("error");
                assert_eq!(status, "error", "{name}: {part}");
            }
        }
        // An abort while nothing runs does nothing.
        assert_eq!(h.ok("POST", &abort, Value::Null).await, json!(true));
    }
}
