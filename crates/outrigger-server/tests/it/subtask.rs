//! Commands that run as subtasks, and what prompts mention.

use serde_json::{Value, json};

use crate::harness::Harness;
use outrigger_test_support::model::{done, text};

#[tokio::test(flavor = "multi_thread")]
async fn a_command_of_a_subagent_runs_as_a_task_and_the_model_goes_on() {
    for (command, permission) in [
        (
            json!({ "template": "Look at $1", "agent": "general", "description": "looks" }),
            json!({}),
        ),
        (
            json!({ "template": "Look at $1", "subtask": true, "description": "looks" }),
            json!({ "task": "deny" }),
        ),
    ] {
        let config = json!({ "command": { "look": command }, "permission": permission });
        let h = Harness::new([text("report"), done()], config).await;
        let session = h.session().await;
        let body = json!({ "command": "look", "arguments": "it" });
        let answer = h
            .ok("POST", &format!("/session/{session}/command"), body)
            .await;
        assert_eq!(answer["parts"][1]["text"], "All done.");
        let messages = h.messages(&session).await;
        let roles: Vec<_> = messages
            .iter()
            .map(|m| m["info"]["role"].as_str().unwrap())
            .collect();
        assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
        let task = &messages[0]["parts"][0];
        assert_eq!(
            (&task["type"], &task["prompt"], &task["command"]),
            (&json!("subtask"), &json!("Look at it"), &json!("look"))
        );
        let call = &messages[1]["parts"][0];
        assert_eq!(
            (&call["tool"], &call["state"]["status"]),
            (&json!("task"), &json!("completed"))
        );
        assert!(call["state"]["output"].as_str().unwrap().contains("report"));
        assert_eq!(messages[1]["info"]["finish"], "tool-calls");
        assert_eq!(messages[2]["parts"][0]["synthetic"], true);
        assert_eq!(messages[3]["info"]["parentID"], messages[2]["info"]["id"]);
        assert!(
            h.mock.requests()[0]
                .texts("user")
                .concat()
                .contains("Look at it")
        );
        assert!(h.mock.last().texts("tool")[0].contains("report"));
        assert_eq!(
            h.sees("command.executed", 1).await["properties"]["name"],
            "look"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subtask_that_fails_is_reported_to_the_model_and_an_abort_ends_it() {
    let config = json!({ "command": { "look": { "template": "t", "agent": "general" } } });
    let fails = json!({ "status": 400, "error": "no" });
    let h = Harness::new([fails, done()], config.clone()).await;
    let session = h.session().await;
    let path = format!("/session/{session}/command");
    let body = json!({ "command": "look" });
    h.ok("POST", &path, body.clone()).await;
    assert_eq!(
        h.parts(&session, "tool").await[0]["state"]["status"],
        "error"
    );
    assert_eq!(h.mock.requests().len(), 2);

    let h = Harness::new([json!({ "text": "x", "stall": 0 })], config).await;
    let session = h.session().await;
    let abort = async {
        h.sees("session.created", 2).await;
        h.ok("POST", &format!("/session/{session}/abort"), Value::Null)
            .await;
    };
    let path = format!("/session/{session}/command");
    let _ = tokio::join!(h.call("POST", &path, body), abort);
    let tool = h.parts(&session, "tool").await.remove(0);
    assert_eq!(tool["state"]["status"], "error");
    assert_eq!(h.published("command.executed").len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_and_agents_in_prompts_and_templates() {
    let config = json!({ "command": { "read": { "template": "Read @hello.txt and ask @general, me@x.org" } } });
    let h = Harness::new([done()], config).await;
    let session = h.session().await;
    let file = |path: String| json!({ "type": "file", "mime": "text/plain", "filename": "f", "url": format!("file://{path}") });
    let outside = h.path("../outside.txt");
    std::fs::write(&outside, "secret").unwrap();
    let parts = json!([
        { "type": "text", "text": "look" },
        file(h.path("hello.txt").display().to_string()),
        file(outside.display().to_string()),
        { "type": "agent", "name": "general" },
    ]);
    h.ok(
        "POST",
        &format!("/session/{session}/message"),
        json!({ "parts": parts }),
    )
    .await;
    let said = h.mock.last().texts("user").concat();
    for wanted in [
        "look",
        "1: hi there",
        "failed to read",
        "call the task tool with subagent: general",
    ] {
        assert!(said.contains(wanted), "{wanted} is not in {said}");
    }
    assert!(!said.contains("secret"));
    let body = json!({ "command": "read", "arguments": "" });
    h.ok("POST", &format!("/session/{session}/command"), body)
        .await;
    let said = h.mock.last().texts("user").pop().unwrap();
    assert!(
        said.contains("Read @hello.txt") && said.contains("1: hi there"),
        "{said}"
    );
    assert_eq!(said.matches("call the task tool").count(), 1);
}
