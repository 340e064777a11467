//! Calls: answers, failures, limits, cancellation, crashes.

use std::time::Duration;

use outrigger_mcp::{McpError, State, content};
use serde_json::{Value, json};

use crate::support::{LONG, Room, node, sh, until};

#[tokio::test]
async fn answers_come_as_the_server_wrote_them() {
    let room = Room::one(node(&["garbage"])).await;
    let answer = room.call("say", json!({"text": "ä"})).await.unwrap();
    assert_eq!(
        answer,
        json!({"content": [{"type": "text", "text": "said ä"}]})
    );
    let failed = room.call("fail", json!({})).await.unwrap();
    assert!(failed["isError"] == true && content::failure(&failed) == "it went wrong");
    let refused = room.call("refused", json!({})).await.unwrap_err();
    insta::assert_snapshot!(refused, @"MCP server m: not with me (-32602)");
}

#[tokio::test]
async fn the_environment_is_the_short_list_and_what_is_configured() {
    let mut entry = node(&[]);
    entry["environment"] = json!({"TOKEN": "t", "HOME": "/elsewhere"});
    entry["cwd"] = json!("sub");
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    let servers = outrigger_mcp::McpServers::start(
        &crate::support::entries(json!({"m": entry})),
        crate::support::options(dir.path()),
    );
    servers.ready().await;
    let tool = servers
        .tools()
        .into_iter()
        .find(|tool| tool.name == "env")
        .unwrap();
    let answer = tool.call(&json!({})).await.unwrap();
    let env: Value = serde_json::from_str(answer["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&env["TOKEN"], &env["HOME"]),
        (&json!("t"), &json!("/elsewhere"))
    );
    // Cargo sets this one for tests.
    assert!(env.get("CARGO_MANIFEST_DIR").is_none() && env.get("PATH").is_some());
    assert!(env["cwd"].as_str().unwrap().ends_with("/sub"), "{env}");
}

#[tokio::test]
async fn a_call_without_answer_ends_at_its_deadline_and_the_server_is_notified() {
    let mut entry = node(&[]);
    entry["timeout"] = json!(8000);
    let room = Room::one(entry).await;
    let hang = room.tool("hang");
    let nothing = json!({});
    let (late, said) = tokio::join!(
        hang.call(&nothing),
        room.text("say", json!({"text": "beside"}))
    );
    assert_eq!(said, "said beside");
    assert!(matches!(late, Err(McpError::Timeout { .. })), "{late:?}");
    // A dropped call counts as cancelled, too.
    let dropped = tokio::time::timeout(Duration::from_millis(200), hang.call(&nothing)).await;
    assert!(dropped.is_err());
    let heard = room.text("heard", json!({})).await;
    assert_eq!(
        heard.matches("notifications/cancelled").count(),
        2,
        "{heard}"
    );
    assert_eq!(room.status("m").restarts, 0);
}

#[tokio::test]
async fn reports_of_progress_put_the_deadline_off() {
    let mut entry = node(&[]);
    entry["timeout"] = json!(20_000);
    // The start has the time that it needs; the calls' timeout is shorter than the whole answer
    // takes.
    let dir = tempfile::tempdir().unwrap();
    let mut options = crate::support::options(dir.path());
    options.call_timeout = Some(Duration::from_secs(3));
    entry.as_object_mut().unwrap().remove("timeout");
    let servers =
        outrigger_mcp::McpServers::start(&crate::support::entries(json!({"m": entry})), options);
    servers.ready().await;
    let tools = servers.tools();
    let call = |name: &str| tools.iter().find(|tool| tool.name == name).unwrap().clone();
    let answer = call("slow").call(&json!({})).await.unwrap();
    assert_eq!(answer["content"][0]["text"], "at last");
    assert!(matches!(
        call("hang").call(&json!({})).await,
        Err(McpError::Timeout { .. })
    ));
}

#[tokio::test]
async fn a_crash_ends_the_call_with_its_cause_and_the_next_call_starts_the_server_again() {
    let mut entry = node(&[]);
    entry["environment"] = json!({"TOKEN": "sk-very-secret"});
    let room = Room::one(entry).await;
    let first = room.status("m").pid;
    let hang = room.tool("hang");
    let nothing = json!({});
    let (hung, crashed) = tokio::join!(hang.call(&nothing), room.call("crash", json!({})));
    insta::assert_snapshot!(crashed.unwrap_err(), @"MCP server m ended (exit code 7); its last words: about to crash with ***");
    assert!(matches!(hung, Err(McpError::Closed { .. })), "{hung:?}");
    insta::assert_snapshot!(room.cause("m"), @"Failed mcp.closed: MCP server m ended (exit code 7); its last words: about to crash with ***");
    // Its tools stay, so that the model may call it again; two concurrent calls cause one restart.
    let say = room.tool("say");
    let (one, two) = (json!({"text": 1}), json!({"text": 2}));
    let (one, two) = tokio::join!(say.call(&one), say.call(&two));
    assert!(one.is_ok() && two.is_ok(), "{one:?} {two:?}");
    let status = room.status("m");
    assert_eq!((status.state, status.restarts), (State::Connected, 1));
    assert_ne!(status.pid, first);
}

#[tokio::test]
async fn a_server_that_does_not_come_up_again_fails_calls_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut entry = node(&["once"]);
    entry["environment"] = json!({"SEEN": dir.path().join("seen")});
    let room = Room::one(entry).await;
    let say = room.tool("say");
    assert!(room.call("crash", json!({})).await.is_err());
    for _ in 0..3 {
        let error = say.call(&json!({"text": "x"})).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "MCP server m ended (exit code 9); its last words: not again"
        );
    }
    assert_eq!(room.status("m").restarts, 1);
}

#[tokio::test]
async fn large_answers_arrive_and_endless_ones_end_the_server() {
    let room = Room::one(node(&[])).await;
    assert_eq!(room.text("big", json!({})).await.len(), 3 << 20);
    let error = room.call("endless", json!({})).await.unwrap_err();
    insta::assert_snapshot!(error, @"MCP server m was ended: it printed a line of more than 32 MiB");
    assert_eq!(
        room.text("say", json!({"text": "again"})).await,
        "said again"
    );
}

#[tokio::test]
async fn a_flood_of_notices_and_of_log_does_not_hide_an_answer() {
    let room = Room::one(node(&[])).await;
    assert_eq!(room.text("chatter", json!({})).await, "heard through it");
    assert_eq!(room.status("m").restarts, 0);
}

#[tokio::test]
async fn pings_are_answered_and_other_requests_refused() {
    let room = Room::one(node(&[])).await;
    room.text("ask", json!({})).await;
    let heard = room.text("heard", json!({})).await;
    assert!(
        heard.contains(r#"{"id":"p","result":{}}"#) && heard.contains("-32601"),
        "{heard}"
    );
}

#[tokio::test]
async fn a_changed_list_of_tools_is_read_again() {
    let room = Room::one(node(&[])).await;
    let mut changes = room.servers.changes();
    room.text("grow", json!({})).await;
    tokio::time::timeout(LONG, changes.changed())
        .await
        .unwrap()
        .unwrap();
    assert!(room.servers.tools().iter().any(|tool| tool.name == "more"));
}

#[tokio::test]
async fn a_server_that_does_not_read_holds_nobody_up() {
    // Answers the first two requests without reading them, then sleeps.
    let script = r#"
        echo '{"id":0,"result":{"protocolVersion":"1","capabilities":{"tools":{}}}}'
        sleep 0.3
        echo '{"id":1,"result":{"tools":[{"name":"say"}]}}'
        exec sleep 600"#;
    let room = Room::one(sh(script, 2000)).await;
    let say = room.tool("say");
    let much = json!({"text": "x".repeat(1 << 20)});
    let calls = (0..3).map(|_| say.call(&much));
    for result in futures_util::future::join_all(calls).await {
        assert!(
            matches!(result, Err(McpError::Timeout { .. })),
            "{result:?}"
        );
    }
    until("it is still there", || room.status("m").pid.is_some()).await;
}
