//! Commands that the user runs in a session.

use serde_json::{Value, json};

use crate::harness::Harness;
use outrigger_test_support::model::{call, done, turn};

async fn shell(h: &Harness, session: &str, command: &str) -> (u16, Value) {
    let body = json!({ "agent": "build", "command": command });
    h.call("POST", &format!("/session/{session}/shell"), body)
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_a_pair_of_messages_that_the_model_reads() {
    let h = Harness::new([done()], json!({ "permission": { "bash": "deny" } })).await;
    let session = h.session().await;
    let (status, answer) = shell(&h, &session, "echo one; echo two >&2; exit 3").await;
    assert_eq!(status, 200, "{answer}");
    let state = &answer["parts"][0]["state"];
    assert_eq!(
        (&answer["parts"][0]["tool"], &state["status"]),
        (&json!("bash"), &json!("completed"))
    );
    let output = state["output"].as_str().unwrap();
    assert!(
        output.contains("one\n") && output.contains("two\n"),
        "{output}"
    );
    assert_eq!(state["metadata"]["exit"], 3);
    assert!(answer["info"]["time"]["completed"].is_u64());
    let messages = h.messages(&session).await;
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0]["parts"][0]["synthetic"], true);
    assert_eq!(messages[1], answer);
    assert_eq!(answer["info"]["parentID"], messages[0]["info"]["id"]);
    h.sees("session.idle", 1).await;
    assert_eq!(
        h.published("session.status")[0]["properties"]["status"]["type"],
        "busy"
    );

    h.prompt(&session, "what was that").await;
    assert!(h.mock.last().texts("tool")[0].contains("one\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_ends_the_command_with_what_it_printed() {
    let h = Harness::new([done()], json!({})).await;
    let session = h.session().await;
    let aborted = async {
        loop {
            let shown = h
                .published("message.part.updated")
                .into_iter()
                .any(|e| e["properties"]["part"]["state"]["metadata"]["output"] == "begun\n");
            if shown {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        h.ok("POST", &format!("/session/{session}/abort"), Value::Null)
            .await
    };
    let ((status, answer), _) = tokio::join!(
        shell(&h, &session, "echo begun; sleep 600; touch late.txt"),
        aborted
    );
    assert_eq!(status, 200);
    assert_eq!(
        answer["parts"][0]["state"]["output"],
        "begun\n\n\n<metadata>\nUser aborted the command\n</metadata>"
    );
    assert!(!h.path("late.txt").exists());
    assert_eq!(h.ok("GET", "/session/status", Value::Null).await, json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_while_a_turn_runs_and_for_an_unknown_agent() {
    let bash = call("bash", json!({ "command": "true", "description": "x" }));
    let h = Harness::new(
        [turn([bash]), done()],
        json!({ "permission": { "bash": "ask" } }),
    )
    .await;
    let session = h.session().await;
    let body = json!({ "agent": "nobody", "command": "true" });
    assert_eq!(
        h.call("POST", &format!("/session/{session}/shell"), body)
            .await
            .0,
        400
    );
    assert_eq!(shell(&h, "ses_none", "true").await.0, 404);
    h.prompt_async(&session, "go").await;
    h.sees("permission.asked", 1).await;
    let (status, error) = shell(&h, &session, "true").await;
    assert_eq!((status, &error["_tag"]), (409, &json!("SessionBusyError")));
    h.ok("POST", &format!("/session/{session}/abort"), Value::Null)
        .await;
    h.sees("session.idle", 1).await;
}
