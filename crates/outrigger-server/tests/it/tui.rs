//! Requests to a terminal interface become events.

use outrigger_agent::NewSession;
use serde_json::json;

use crate::support::World;

#[tokio::test]
async fn every_request_is_published_as_in_opencode() {
    let world = World::plain().await;
    let session = world
        .agent
        .create_session(NewSession::default())
        .await
        .unwrap()
        .id;
    let mut events = world.agent.listen();
    let execute = "tui.command.execute";
    let command = |name: &str| json!({"command": name});
    let cases = [
        (
            "append-prompt",
            json!({"text": "x"}),
            "tui.prompt.append",
            json!({"text": "x"}),
        ),
        ("open-help", json!({}), execute, command("help.show")),
        ("open-sessions", json!({}), execute, command("session.list")),
        ("open-themes", json!({}), execute, command("theme.list")),
        ("open-models", json!({}), execute, command("model.list")),
        (
            "submit-prompt",
            json!({}),
            execute,
            command("prompt.submit"),
        ),
        ("clear-prompt", json!({}), execute, command("prompt.clear")),
        (
            "execute-command",
            command("agent_cycle"),
            execute,
            command("agent.cycle"),
        ),
        (
            "execute-command",
            command("session.new"),
            execute,
            command("session.new"),
        ),
        (
            "show-toast",
            json!({"message": "m", "variant": "info"}),
            "tui.toast.show",
            json!({"message": "m", "variant": "info", "duration": 5000}),
        ),
        (
            "publish",
            json!({"type": "tui.prompt.append", "properties": {"text": "a"}}),
            "tui.prompt.append",
            json!({"text": "a"}),
        ),
        (
            "select-session",
            json!({"sessionID": session}),
            "tui.session.select",
            json!({"sessionID": session}),
        ),
    ];
    for (path, body, kind, properties) in cases {
        let answer = world.post(&format!("/tui/{path}"), body).await;
        assert_eq!(answer.ok(), json!(true), "{path}");
        assert_eq!(World::event(&mut events, kind).await, properties, "{path}");
    }
    let answer = world.post("/tui/control/response", json!({"a": 1})).await;
    assert_eq!(answer.ok(), json!(true));
}

#[tokio::test]
async fn what_no_event_could_hold_is_refused() {
    let world = World::plain().await;
    let cases = [
        ("append-prompt", json!({}), 400),
        ("show-toast", json!({"message": "m", "variant": "bad"}), 400),
        ("publish", json!({"type": "x", "properties": {}}), 400),
        (
            "publish",
            json!({"type": "tui.prompt.append", "properties": {}}),
            400,
        ),
        ("select-session", json!({"sessionID": "nope"}), 400),
        ("select-session", json!({"sessionID": "ses_nope"}), 404),
        (
            "publish",
            json!({"type": "tui.session.select", "properties": {"sessionID": "ses_nope"}}),
            404,
        ),
    ];
    for (path, body, status) in cases {
        let answer = world.post(&format!("/tui/{path}"), body).await;
        assert_eq!(answer.error().0, status, "{path}");
    }
}
