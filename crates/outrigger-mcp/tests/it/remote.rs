//! Servers behind streamable HTTP.

use futures_util::future::BoxFuture;
use outrigger_mcp::{Answering, Elicitation, Elicited, McpError, State};
use outrigger_sandbox::{Child, Spawner, Spec, env};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use crate::support::Room;

/// Starts a script that serves HTTP and prints its port. Returns it with its address.
pub(crate) async fn serve(script: &str, modes: &[&str]) -> (Child, String) {
    let spec = Spec::new("node")
        .arg(format!("{}/tests/it/{script}", env!("CARGO_MANIFEST_DIR")))
        .args(modes)
        .vars(env::allow_list(&[]))
        .piped();
    let mut child = Spawner::new().unwrap().spawn(spec).await.unwrap();
    let mut port = [0; 16];
    let read = child
        .stdout
        .as_mut()
        .unwrap()
        .read(&mut port)
        .await
        .unwrap();
    let port = String::from_utf8_lossy(&port[..read]).trim().to_owned();
    (child, format!("http://127.0.0.1:{port}"))
}

async fn start(mode: &str) -> (Child, Value) {
    started("remote.mjs", mode).await
}

async fn started(script: &str, mode: &str) -> (Child, Value) {
    let (child, base) = serve(script, &[mode]).await;
    let url = format!("{base}/mcp");
    (
        child,
        json!({"type": "remote", "url": url, "headers": {"X-Key": "k"}, "timeout": 20_000}),
    )
}

#[tokio::test]
async fn answers_come_as_json_or_as_events() {
    for mode in ["json", "events"] {
        let (_server, entry) = start(mode).await;
        let room = Room::one(entry).await;
        assert_eq!(
            room.status("m").state,
            State::Connected,
            "{}",
            room.cause("m")
        );
        assert_eq!(
            room.text("say", json!({"text": "hi"})).await,
            "said hi to k"
        );
        let seen = room.text("seen", json!({})).await;
        assert_eq!(
            seen,
            r#"[["initialize",null,null],["notifications/initialized","s0","2025-03-26"],["tools/list","s0","2025-03-26"],["tools/call","s0","2025-03-26"],["tools/call","s0","2025-03-26"]]"#
        );
    }
}

/// SEP-1699: a server may end the stream of an answer and have it fetched later.
#[tokio::test]
async fn a_stream_that_ends_before_the_answer_is_resumed() {
    let (_server, entry) = start("resume").await;
    let room = Room::one(entry).await;
    assert_eq!(room.text("say", json!({})).await, "resumed");
    let seen = room.text("seen", json!({})).await;
    assert!(seen.contains(r#"["resumed","e1",true]"#), "{seen}");
}

/// On its own stream a server gets the folder; it cannot ask the user there.
#[tokio::test]
async fn what_a_server_says_of_its_own_accord_is_heard() {
    let (_server, entry) = start("own").await;
    let room = Room::one(entry).await;
    let mut seen = String::new();
    while !(seen.contains(r#""id":"r1""#) && seen.contains(r#""id":"r2""#)) {
        seen = room.text("seen", json!({})).await;
    }
    assert!(seen.contains(r#""roots":[{"uri":"file:///"#), "{seen}");
    assert!(
        seen.contains(r#""id":"r2","result":{"action":"cancel"}"#),
        "{seen}"
    );
}

/// Accepts the defaults of forms, and refuses use of the model.
struct Defaults;

impl Answering for Defaults {
    fn elicit<'a>(&'a self, form: &'a Elicitation) -> BoxFuture<'a, Elicited> {
        Box::pin(async move { Elicited::Accept(form.filled(|_| None).unwrap()) })
    }

    fn sample<'a>(&'a self, _params: &'a Value) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async { Err("the user refused".to_owned()) })
    }
}

#[tokio::test]
async fn what_a_server_requests_during_a_call_the_caller_answers() {
    let (_server, entry) = start("json").await;
    let room = Room::one(entry).await;
    let mut answers = Vec::new();
    for method in ["elicitation/create", "sampling/createMessage"] {
        let input = json!({"method": method});
        let answer = room.tool("ask").call_answering(&input, &Defaults).await;
        answers.push(answer.unwrap()["content"][0]["text"].clone());
        answers.push(room.text("ask", input).await.into());
    }
    assert_eq!(
        answers,
        [
            r#"{"action":"accept","content":{"name":"John"}}"#,
            r#"{"action":"cancel"}"#,
            r#"{"code":-1,"message":"the user refused"}"#,
            r#"{"code":-1,"message":"nobody can be asked"}"#,
        ]
    );
}

#[tokio::test]
async fn a_session_that_the_server_forgot_is_begun_again() {
    let (_server, entry) = start("json").await;
    let room = Room::one(entry).await;
    room.text("forget", json!({})).await;
    assert_eq!(
        room.text("say", json!({"text": "hi"})).await,
        "said hi to k"
    );
    assert_eq!(room.status("m").restarts, 1);
}

#[tokio::test]
async fn a_call_without_answer_is_given_up() {
    let (_server, mut entry) = start("json").await;
    entry["timeout"] = json!(1500);
    let room = Room::one(entry).await;
    let error = room.call("hang", json!({})).await.unwrap_err();
    assert!(matches!(error, McpError::Timeout { .. }), "{error}");
    let mut seen = String::new();
    while !seen.contains("notifications/cancelled") {
        seen = room.text("seen", json!({})).await;
    }
}

#[tokio::test]
async fn what_is_wrong_is_named() {
    let mut list = Vec::new();
    for mode in ["auth", "broken", "elsewhere"] {
        let (_server, entry) = start(mode).await;
        list.push(Room::one(entry).await.cause("m"));
    }
    list.push(
        Room::one(json!({"type": "remote", "url": "http://127.0.0.1:1/secret"}))
            .await
            .cause("m"),
    );
    list.push(
        Room::one(json!({"type": "remote", "url": "http://127.0.0.1:1", "headers": {"a b": "c"}}))
            .await
            .cause("m"),
    );
    list.push(
        Room::one(json!({"type": "remote", "url": "ftp://x"}))
            .await
            .cause("m"),
    );
    insta::assert_snapshot!(list.join("\n"), @r"
    NeedsAuth mcp.needs_auth: MCP server m wants authentication (HTTP 401)
    Failed mcp.http: MCP server m: HTTP 500 Internal Server Error: out of order
    Failed mcp.http: MCP server m: HTTP 307 Temporary Redirect
    Failed mcp.unreachable: cannot reach MCP server m at 127.0.0.1: Connection refused (os error 111)
    Failed mcp.config: MCP server m: `headers.a b` is not a valid header
    Failed mcp.config: MCP server m: `url` must begin with http:// or https://
    ");
}

#[tokio::test]
async fn the_older_transport_is_spoken_where_the_newer_is_not_understood() {
    let (_server, mut entry) = started("older.mjs", "").await;
    entry["timeout"] = json!(3000);
    let room = Room::one(entry).await;
    assert_eq!(
        room.status("m").state,
        State::Connected,
        "{}",
        room.cause("m")
    );
    assert_eq!(
        room.text("say", json!({"text": "hi"})).await,
        "said hi to k"
    );
    let error = room.call("hang", json!({})).await.unwrap_err();
    assert!(matches!(error, McpError::Timeout { .. }), "{error}");
    // The next call opens the stream again.
    let error = room.call("leave", json!({})).await.unwrap_err();
    insta::assert_snapshot!(error, @"MCP server m ended the stream of events");
    assert_eq!(
        room.text("say", json!({"text": "ho"})).await,
        "said ho to k"
    );
}

#[tokio::test]
async fn an_address_of_another_origin_is_not_taken() {
    let (_server, entry) = started("older.mjs", "elsewhere").await;
    let room = Room::one(entry).await;
    // The answer to the newer transport.
    insta::assert_snapshot!(room.cause("m"), @"Failed mcp.http: MCP server m: HTTP 404 Not Found");
}
