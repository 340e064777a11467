//! Routes that change a session.

use serde_json::{Value, json};

use crate::harness::Harness;
use outrigger_test_support::model::{call, done, text, turn};

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_changed() {
    let h = Harness::new([done()], json!({})).await;
    let id = h.session().await;
    let rule = json!({ "permission": "bash", "pattern": "*", "action": "deny" });
    let path = format!("/session/{id}");
    for (body, pointer, want) in [
        (json!({ "title": "New" }), "/title", json!("New")),
        (json!({ "metadata": { "k": 1 } }), "/metadata/k", json!(1)),
        (
            json!({ "time": { "archived": 1234.0 } }),
            "/time/archived",
            json!(1234),
        ),
        (
            json!({ "permission": [rule] }),
            "/permission/0",
            rule.clone(),
        ),
        (
            json!({ "permission": [rule] }),
            "/permission/1",
            rule.clone(),
        ),
        (json!({}), "/title", json!("New")),
    ] {
        let session = h.ok("PATCH", &path, body).await;
        assert_eq!(session.pointer(pointer), Some(&want));
    }
    h.sees("session.updated", 6).await;
    let (status, error) = h.call("PATCH", "/session/ses_none", json!({})).await;
    assert_eq!((status, &error["name"]), (404, &json!("NotFoundError")));
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_and_parts_are_taken_out_and_rewritten() {
    let h = Harness::new([text("one"), text("two")], json!({})).await;
    let id = h.session().await;
    h.prompt(&id, "first").await;
    h.prompt(&id, "second").await;
    let messages = h.messages(&id).await;
    let (first, answer) = (&messages[0], &messages[1]);
    let message = first["info"]["id"].as_str().unwrap();
    let mut part = first["parts"][0].clone();
    part["text"] = json!("rewritten");
    let at = format!(
        "/session/{id}/message/{message}/part/{}",
        part["id"].as_str().unwrap()
    );
    assert_eq!(h.ok("PATCH", &at, part.clone()).await, part);
    assert_eq!(h.messages(&id).await[0]["parts"][0]["text"], "rewritten");

    let other = at.replace("/part/prt", "/part/prtx");
    assert_eq!(h.call("PATCH", &other, part.clone()).await.0, 400);
    assert_eq!(
        h.call("PATCH", &at, json!({ "type": "nonsense" })).await.0 / 100,
        4
    );
    part["messageID"] = json!("msg_none");
    let nowhere = at.replace(message, "msg_none");
    assert_eq!(h.call("PATCH", &nowhere, part).await.0, 404);

    assert_eq!(h.ok("DELETE", &at, Value::Null).await, json!(true));
    assert_eq!(h.messages(&id).await[0]["parts"], json!([]));
    let removed = h.sees("message.part.removed", 1).await;
    assert_eq!(removed["properties"]["messageID"], json!(message));

    let gone = format!(
        "/session/{id}/message/{}",
        answer["info"]["id"].as_str().unwrap()
    );
    assert_eq!(h.ok("DELETE", &gone, Value::Null).await, json!(true));
    assert_eq!(
        h.ok("DELETE", &gone, Value::Null).await,
        json!(true),
        "it is gone already"
    );
    assert_eq!(h.messages(&id).await.len(), 3);
    h.sees("message.removed", 1).await;
    assert_eq!(h.published("message.removed").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_taken_out_of_a_session_at_work() {
    let bash = call("bash", json!({ "command": "true", "description": "x" }));
    let h = Harness::new(
        [turn([bash]), done()],
        json!({ "permission": { "bash": "ask" } }),
    )
    .await;
    let id = h.session().await;
    h.prompt_async(&id, "go").await;
    h.sees("permission.asked", 1).await;
    let message = h.messages(&id).await[0]["info"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let (status, error) = h
        .call(
            "DELETE",
            &format!("/session/{id}/message/{message}"),
            Value::Null,
        )
        .await;
    assert_eq!((status, &error["_tag"]), (409, &json!("SessionBusyError")));
    assert_eq!(error["sessionID"], json!(id));
    h.ok("POST", &format!("/session/{id}/abort"), Value::Null)
        .await;
    h.sees("session.idle", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_ends_before_the_message_that_is_named() {
    let h = Harness::new([text("one"), text("two")], json!({})).await;
    let id = h.session().await;
    h.prompt(&id, "first").await;
    h.prompt(&id, "second").await;
    h.ok("PATCH", &format!("/session/{id}"), json!({ "title": "T" }))
        .await;
    let second = h.messages(&id).await[2]["info"]["id"].clone();
    for (body, count, title) in [
        (Value::Null, 4, "T (fork #1)"),
        (json!({}), 4, "T (fork #1)"),
        (json!({ "messageID": second }), 2, "T (fork #1)"),
        (json!({ "messageID": "msg_none" }), 4, "T (fork #1)"),
    ] {
        let fork = h
            .ok("POST", &format!("/session/{id}/fork"), body.clone())
            .await;
        let messages = h.messages(fork["id"].as_str().unwrap()).await;
        assert_eq!(
            (messages.len(), &fork["title"]),
            (count, &json!(title)),
            "{body}"
        );
        assert_eq!(messages[1]["info"]["parentID"], messages[0]["info"]["id"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sharing_is_refused_and_init_runs_its_command() {
    let h = Harness::new([done()], json!({})).await;
    let id = h.session().await;
    let share = format!("/session/{id}/share");
    let (status, error) = h.call("POST", &share, Value::Null).await;
    assert_eq!(
        (status, &error["_tag"]),
        (500, &json!("InternalServerError"))
    );
    assert_eq!(h.ok("DELETE", &share, Value::Null).await["id"], json!(id));

    let body = json!({ "providerID": "mock", "modelID": "m1", "messageID": "msg_0000000000001" });
    assert_eq!(
        h.ok("POST", &format!("/session/{id}/init"), body).await,
        json!(true)
    );
    assert!(h.mock.last().texts("user")[0].contains("AGENTS.md"));
    assert_eq!(h.messages(&id).await[0]["info"]["id"], "msg_0000000000001");
    let executed = h.sees("command.executed", 1).await;
    assert_eq!(executed["properties"]["name"], "init");
}
