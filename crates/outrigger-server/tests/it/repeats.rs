//! Calls that repeat themselves.

use serde_json::{Value, json};

use crate::harness::Harness;
use outrigger_test_support::model::{call, done, turn};

fn bash(command: &str) -> Value {
    turn([call(
        "bash",
        json!({ "command": command, "description": "x" }),
    )])
}

#[tokio::test(flavor = "multi_thread")]
async fn the_third_call_with_the_same_result_is_asked_about() {
    let (a, b) = (bash("echo a"), bash("echo b"));
    let date = bash("date +%N");
    for (name, turns, asked, requests) in [
        ("the same", vec![a.clone(); 3], true, 3),
        (
            "a cycle",
            [&a, &b, &a, &b, &a, &b].map(Value::clone).to_vec(),
            true,
            6,
        ),
        (
            "twice",
            vec![a.clone(), a.clone(), b.clone(), a.clone()],
            false,
            5,
        ),
        ("another result", vec![date; 3], false, 4),
        (
            "side by side",
            vec![json!({ "tools": [a["tools"][0], a["tools"][0], a["tools"][0]] })],
            true,
            1,
        ),
    ] {
        let h = Harness::new(turns.into_iter().chain([done()]), json!({})).await;
        let session = h.session().await;
        h.prompt_async(&session, "go").await;
        if asked {
            let request = h.sees("permission.asked", 1).await["properties"].clone();
            assert_eq!(
                (&request["permission"], &request["patterns"]),
                (&json!("doom_loop"), &json!(["bash"])),
                "{name}"
            );
            assert_eq!(request["metadata"]["tool"], "bash");
            assert_eq!(h.mock.requests().len(), requests, "{name}");
            let id = request["id"].as_str().unwrap();
            h.ok(
                "POST",
                &format!("/permission/{id}/reply"),
                json!({ "reply": "once" }),
            )
            .await;
        }
        h.sees("session.idle", 1).await;
        let wanted = if asked { requests + 1 } else { requests };
        assert_eq!(h.mock.requests().len(), wanted, "{name}");
        let tools = h.parts(&session, "tool").await;
        assert!(
            tools.iter().all(|t| t["state"]["status"] == "completed"),
            "{name}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_ends_the_turn() {
    for config in [json!({}), json!({ "permission": { "doom_loop": "deny" } })] {
        let asks = config == json!({});
        let h = Harness::new([bash("echo a")], config).await;
        let session = h.session().await;
        h.prompt_async(&session, "go").await;
        if asks {
            let request = h.sees("permission.asked", 1).await;
            let id = request["properties"]["id"].as_str().unwrap();
            h.ok(
                "POST",
                &format!("/permission/{id}/reply"),
                json!({ "reply": "reject" }),
            )
            .await;
        }
        h.sees("session.idle", 1).await;
        assert_eq!(h.mock.requests().len(), 3);
        let error = h.sees("session.error", 1).await;
        assert_eq!(error["properties"]["error"]["name"], "DoomLoopError");
        let last = h.messages(&session).await.pop().unwrap();
        assert_eq!(last["info"]["error"]["name"], "DoomLoopError");
        let tools = h.parts(&session, "tool").await;
        assert_eq!(tools[2]["state"]["status"], "error");
    }
}
