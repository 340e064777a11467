//! Additional options of a request take effect, or are refused with a message.

use serde_json::{Value, json};

use crate::harness::Harness;
use crate::support::{Answer, World};
use outrigger_test_support::model::{call, done, turn};

fn ids(answer: &Answer) -> Vec<String> {
    answer
        .ok()
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["info"]["id"].as_str().unwrap().to_owned())
        .collect()
}

async fn notes(world: &World, count: usize) -> String {
    let session = world.send("POST", "/session", Some("{}")).await.ok();
    let id = session["id"].as_str().unwrap().to_owned();
    for _ in 0..count {
        let prompt = json!({ "noReply": true, "parts": [{ "type": "text", "text": "x" }] });
        let prompt = serde_json::from_value(prompt).unwrap();
        let session = id.as_str().into();
        let request = outrigger_agent::TurnRequest::prompt(&session, prompt);
        world.agent.run(request).await.unwrap();
    }
    id
}

fn with_model() -> Value {
    json!({
        "model": "mock/m1",
        "provider": {"mock": {
            "npm": "@ai-sdk/openai-compatible", "name": "Mock",
            "options": {"baseURL": "http://127.0.0.1:9/v1", "apiKey": "k"},
            "models": {"m1": {"name": "M1", "tool_call": true, "limit": {"context": 100_000, "output": 4000}}},
        }},
    })
}

/// Validated against `GET /doc` like every answer (support.rs): it is the user's own message then.
#[tokio::test]
async fn a_prompt_without_a_reply_is_answered_as_described() {
    let world = World::with(&with_model(), |_| {}).await;
    let session = notes(&world, 0).await;
    let body = json!({ "noReply": true, "parts": [{ "type": "text", "text": "x" }] });
    let path = format!("/session/{session}/message");
    let answer = world.post(&path, body).await.ok();
    assert_eq!(answer["info"]["role"], "user");
    assert_eq!(answer["parts"][0]["text"], "x");
}

#[tokio::test]
async fn messages_come_in_pages() {
    let world = World::with(&with_model(), |_| {}).await;
    let session = notes(&world, 5).await;
    let path = format!("/session/{session}/message");
    let all = ids(&world.get(&path).await);
    assert_eq!(all.len(), 5);
    let host = [("host", "127.0.0.1:4096")];
    let first = world
        .send_with("GET", &format!("{path}?limit=2"), &host)
        .await;
    assert_eq!(ids(&first), all[3..]);
    assert_eq!(
        first.headers["access-control-expose-headers"],
        "Link, X-Next-Cursor"
    );
    let cursor = first.headers["x-next-cursor"].to_str().unwrap();
    let link = first.headers["link"].to_str().unwrap();
    assert_eq!(
        link,
        format!("<http://127.0.0.1:4096{path}?limit=2&before={cursor}>; rel=\"next\"")
    );
    let next = link
        .split('>')
        .next()
        .unwrap()
        .strip_prefix("<http://127.0.0.1:4096")
        .unwrap();
    let second = world.get(next).await;
    assert_eq!(ids(&second), all[1..3]);
    let cursor = second.headers["x-next-cursor"].to_str().unwrap();
    let last = world.get(&format!("{path}?limit=2&before={cursor}")).await;
    assert_eq!(ids(&last), all[..1]);
    for answer in [
        &last,
        &world.get(&path).await,
        &world.get(&format!("{path}?limit=5")).await,
    ] {
        assert!(answer.headers.get("x-next-cursor").is_none());
        assert!(answer.headers.get("link").is_none());
    }
    // As in OpenCode, a request without a limit has no pages.
    assert_eq!(ids(&world.get(&format!("{path}?limit=0")).await), all);
}

#[tokio::test]
async fn a_page_behind_nothing_is_refused() {
    let world = World::with(&with_model(), |_| {}).await;
    let session = notes(&world, 1).await;
    for query in ["limit=2&before=junk", "before=junk", "limit=-1", "limit=x"] {
        let answer = world
            .get(&format!("/session/{session}/message?{query}"))
            .await;
        assert_eq!(answer.error(), (400, "BadRequest".into()), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_takes_files_and_an_identifier() {
    let command = json!({ "hi": { "template": "say hi with @hello.txt" } });
    let h = Harness::new([done()], json!({ "command": command })).await;
    let session = h.session().await;
    let more = h.path("more.txt");
    std::fs::write(&more, "the other file\n").unwrap();
    let file = |path: std::path::PathBuf| {
        json!({
            "type": "file", "mime": "text/plain", "filename": path.file_name().unwrap().to_str(),
            "url": format!("file://{}", path.display()),
        })
    };
    let path = format!("/session/{session}/command");
    let body = json!({
        "command": "hi", "arguments": "", "messageID": "msg_0chosen",
        "parts": [file(more), file(h.path("hello.txt"))],
    });
    h.ok("POST", &path, body).await;
    let messages = h.messages(&session).await;
    assert_eq!(messages[0]["info"]["id"], "msg_0chosen");
    let files = h.parts(&session, "file").await;
    let names: Vec<_> = files
        .iter()
        .map(|f| f["filename"].as_str().unwrap())
        .collect();
    // The file that the template also names is included once.
    assert_eq!(names, ["more.txt", "hello.txt"]);
    let said = h.mock.last().texts("user").join("\n");
    assert!(said.contains("the other file"), "{said}");
    assert_eq!(said.matches("hi there").count(), 1, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_takes_nothing_but_files() {
    let command = json!({ "hi": { "template": "say hi" } });
    let h = Harness::new([done()], json!({ "command": command })).await;
    let session = h.session().await;
    let body = json!({
        "command": "hi", "arguments": "", "parts": [{ "type": "text", "text": "and this" }],
    });
    let path = format!("/session/{session}/command");
    let (status, error) = h.call("POST", &path, body).await;
    assert_eq!((status, &error["name"]), (400, &json!("BadRequest")));
    assert!(h.messages(&session).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered_for_its_own_session_only() {
    let bash = call("bash", json!({ "command": "true", "description": "x" }));
    let config = json!({ "permission": { "bash": "ask" } });
    let h = Harness::new([turn([bash]), done()], config).await;
    let (session, other) = (h.session().await, h.session().await);
    h.prompt_async(&session, "go").await;
    let asked = h.sees("permission.asked", 1).await;
    let id = asked["properties"]["id"].as_str().unwrap();
    let body = json!({ "response": "once" });
    let wrong = format!("/session/{other}/permissions/{id}");
    let (status, error) = h.call("POST", &wrong, body.clone()).await;
    assert_eq!(
        (status, &error["_tag"]),
        (404, &json!("PermissionNotFoundError"))
    );
    assert_eq!(h.ok("GET", "/permission", Value::Null).await[0]["id"], id);
    let right = format!("/session/{session}/permissions/{id}");
    assert_eq!(h.ok("POST", &right, body).await, json!(true));
    h.sees("session.idle", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_waits_to_ask_again_says_so() {
    let busy = json!({ "status": 429, "error": "slow down", "retry_after": "200" });
    let h = Harness::new([busy], json!({})).await;
    let session = h.session().await;
    h.prompt_async(&session, "go").await;
    let published = loop {
        let found = h.published("session.status").into_iter();
        let mut waits = found.filter(|e| e["properties"]["status"]["type"] == "retry");
        if let Some(event) = waits.next() {
            break event;
        }
        assert!(h.published("session.idle").is_empty(), "{:?}", h.kinds());
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    };
    let all = h.ok("GET", "/session/status", Value::Null).await;
    assert_eq!(all, json!({ &session: published["properties"]["status"] }));
    h.ok("POST", &format!("/session/{session}/abort"), Value::Null)
        .await;
    h.sees("session.idle", 1).await;
    let end = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while h.ok("GET", "/session/status", Value::Null).await != json!({}) {
        assert!(std::time::Instant::now() < end, "the session stays busy");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}
