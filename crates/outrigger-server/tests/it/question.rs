//! Questions about permissions, and the model's questions to the user.

use serde_json::{Value, json};

use crate::harness::Harness;
use outrigger_test_support::model::{call, done, turn};

fn bash(command: &str) -> Value {
    call("bash", json!({ "command": command, "description": "x" }))
}

fn asks(question: &str) -> Value {
    let options = json!([{ "label": "Red", "description": "warm" }, { "label": "Blue", "description": "cold" }]);
    call(
        "question",
        json!({ "questions": [{ "question": question, "header": "Color", "options": options }] }),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_to_a_permission_question() {
    for (body, runs, steps, text) in [
        (json!({ "reply": "once" }), true, 2, ""),
        (json!({ "reply": "always" }), true, 2, ""),
        (
            json!({ "reply": "reject" }),
            false,
            1,
            "rejected permission",
        ),
        (
            json!({ "reply": "reject", "message": "use make" }),
            false,
            2,
            "use make",
        ),
    ] {
        let h = Harness::new(
            [turn([bash("touch ran.txt")]), done()],
            json!({ "permission": { "bash": "ask" } }),
        )
        .await;
        let session = h.session().await;
        h.prompt_async(&session, "go").await;
        let asked = h.sees("permission.asked", 1).await;
        let open = h.ok("GET", "/permission", Value::Null).await;
        assert_eq!(open[0]["id"], asked["properties"]["id"]);
        let id = open[0]["id"].as_str().unwrap();
        let answer = h
            .ok("POST", &format!("/permission/{id}/reply"), body.clone())
            .await;
        assert_eq!(answer, json!(true));
        h.sees("session.idle", 1).await;
        assert_eq!(h.path("ran.txt").exists(), runs, "{body}");
        assert_eq!(h.mock.requests().len(), steps, "{body}");
        let tools = h.parts(&session, "tool").await;
        let error = tools[0]["state"]["error"].as_str().unwrap_or_default();
        assert!(error.contains(text), "{error}");
        let replied = h.sees("permission.replied", 1).await;
        assert_eq!(replied["properties"]["reply"], body["reply"]);
        let (status, error) = h
            .call("POST", &format!("/permission/{id}/reply"), body)
            .await;
        assert_eq!(
            (status, &error["_tag"]),
            (404, &json!("PermissionNotFoundError"))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_older_form_of_the_answer_and_what_always_answers() {
    let h = Harness::new(
        [turn([bash("touch 1.txt"), bash("touch 2.txt")]), done()],
        json!({ "permission": { "bash": "ask" } }),
    )
    .await;
    let session = h.session().await;
    h.prompt_async(&session, "go").await;
    h.sees("permission.asked", 2).await;
    let open = h.ok("GET", "/permission", Value::Null).await;
    let id = open[0]["id"].as_str().unwrap();
    h.ok(
        "POST",
        &format!("/session/{session}/permissions/{id}"),
        json!({ "response": "always" }),
    )
    .await;
    h.sees("session.idle", 1).await;
    assert!(h.path("1.txt").exists() && h.path("2.txt").exists());
    h.sees("permission.replied", 2).await;
}

/// A refusal refuses the other calls that wait. With words, all of them are answered with the words, and the model reads them.
#[tokio::test(flavor = "multi_thread")]
async fn words_at_one_of_two_questions_reach_the_model() {
    for (body, steps) in [
        (json!({ "reply": "reject" }), 1),
        (json!({ "reply": "reject", "message": "no, use pnpm" }), 2),
    ] {
        let h = Harness::new(
            [turn([bash("touch 1.txt"), bash("touch 2.txt")]), done()],
            json!({ "permission": { "bash": "ask" } }),
        )
        .await;
        let session = h.session().await;
        h.prompt_async(&session, "go").await;
        h.sees("permission.asked", 2).await;
        let open = h.ok("GET", "/permission", Value::Null).await;
        let id = open[0]["id"].as_str().unwrap();
        h.ok("POST", &format!("/permission/{id}/reply"), body.clone())
            .await;
        h.sees("session.idle", 1).await;
        assert!(!h.path("1.txt").exists() && !h.path("2.txt").exists());
        assert_eq!(h.mock.requests().len(), steps, "{body}");
        let words = body["message"].as_str().unwrap_or("rejected permission");
        for call in h.parts(&session, "tool").await {
            let error = call["state"]["error"].as_str().unwrap_or_default();
            assert!(error.contains(words), "{body}: {error}");
        }
        h.sees("permission.replied", 2).await;
    }
}

/// "Always" for files with a question opens none that a rule denies.
#[tokio::test(flavor = "multi_thread")]
async fn always_lifts_no_deny() {
    let read = |file: &str| turn([call("read", json!({ "filePath": file }))]);
    let rules = json!({ "read": { "*": "ask", "*.env": "deny" } });
    let h = Harness::new(
        [read("a.txt"), read("b.txt"), read("x.env"), done()],
        json!({ "permission": rules }),
    )
    .await;
    for file in ["a.txt", "b.txt", "x.env"] {
        std::fs::write(h.path(file), "what it holds").unwrap();
    }
    let session = h.session().await;
    h.prompt_async(&session, "go").await;
    let asked = h.sees("permission.asked", 1).await;
    let id = asked["properties"]["id"].as_str().unwrap();
    let reply = json!({ "reply": "always" });
    h.ok("POST", &format!("/permission/{id}/reply"), reply)
        .await;
    h.sees("session.idle", 1).await;
    let tools = h.parts(&session, "tool").await;
    let shows = |at: usize| tools[at]["state"].to_string().contains("what it holds");
    assert_eq!(
        [shows(0), shows(1), shows(2)],
        [true, true, false],
        "{tools:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_answered() {
    let h = Harness::new([turn([asks("Which color?")]), done()], json!({})).await;
    let session = h.session().await;
    h.prompt_async(&session, "go").await;
    let asked = h.sees("question.asked", 1).await;
    assert!(
        h.mock.requests()[0]
            .tools()
            .contains(&"question".to_owned())
    );
    let open = h.ok("GET", "/question", Value::Null).await;
    assert_eq!(open[0], asked["properties"]);
    assert_eq!(open[0]["questions"][0]["options"][1]["label"], "Blue");
    assert_eq!(open[0]["tool"]["callID"], "call_0_0");
    let id = open[0]["id"].as_str().unwrap();
    let body = json!({ "answers": [["Blue"]] });
    h.ok("POST", &format!("/question/{id}/reply"), body.clone())
        .await;
    h.sees("session.idle", 1).await;
    let replied = h.sees("question.replied", 1).await;
    assert_eq!(replied["properties"]["answers"], json!([["Blue"]]));
    let results = h.mock.last().texts("tool");
    assert!(
        results[0].contains("\"Which color?\"=\"Blue\""),
        "{results:?}"
    );
    let (status, error) = h.call("POST", &format!("/question/{id}/reply"), body).await;
    assert_eq!(
        (status, &error["_tag"]),
        (404, &json!("QuestionNotFoundError"))
    );
}

/// A user who dismisses a question wants to say something else: the turn ends after the step.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_put_away() {
    let h = Harness::new([turn([asks("Which color?")]), done()], json!({})).await;
    let session = h.session().await;
    h.prompt_async(&session, "go").await;
    let asked = h.sees("question.asked", 1).await;
    let id = asked["properties"]["id"].as_str().unwrap();
    h.ok("POST", &format!("/question/{id}/reject"), Value::Null)
        .await;
    h.sees("session.idle", 1).await;
    assert_eq!(h.mock.requests().len(), 1);
    h.sees("question.rejected", 1).await;
    let tools = h.parts(&session, "tool").await;
    assert_eq!(
        tools[0]["state"]["error"],
        "The user dismissed this question"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_takes_questions_back() {
    for (tool, asked, taken_back) in [
        (bash("true"), "permission.asked", "permission.replied"),
        (asks("Which?"), "question.asked", "question.rejected"),
    ] {
        let config = json!({ "permission": { "bash": "ask" } });
        let h = Harness::new([turn([tool]), done()], config).await;
        let session = h.session().await;
        h.prompt_async(&session, "go").await;
        h.sees(asked, 1).await;
        h.ok("POST", &format!("/session/{session}/abort"), Value::Null)
            .await;
        h.sees("session.idle", 1).await;
        h.sees(taken_back, 1).await;
        let kinds = h.kinds();
        let at = |kind: &str| kinds.iter().position(|k| k == kind);
        assert!(at(asked) < at(taken_back), "{kinds:?}");
        assert_eq!(h.ok("GET", "/permission", Value::Null).await, json!([]));
        assert_eq!(h.ok("GET", "/question", Value::Null).await, json!([]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_may_not_ask_is_not_offered_the_tool() {
    let config = json!({ "agent": { "build": { "permission": { "question": "deny" } } } });
    let h = Harness::new([turn([asks("Which?")]), done()], config).await;
    let session = h.session().await;
    h.prompt(&session, "go").await;
    assert!(
        !h.mock.requests()[0]
            .tools()
            .contains(&"question".to_owned())
    );
    let tools = h.parts(&session, "tool").await;
    assert_eq!(tools[0]["tool"], "invalid");
}
