//! `/outrigger/v1` over one agent: cut texts, traces, the audit, and both forms.

use outrigger_conversation::ExternalAnswer;
use outrigger_protocol::merged::AgentOutput;
use outrigger_protocol::message::{AssistantMessage, NamedError};
use outrigger_test_support::model::{call, done, turn};
use serde_json::{Value, json};

use crate::harness::Harness;

#[tokio::test(flavor = "multi_thread")]
async fn long_texts_are_cut_and_fetched() {
    let bash = json!({ "command": "seq 20000", "description": "x" });
    let calls = [
        call("bash", bash),
        call("read", json!({ "filePath": "hello.txt" })),
    ];
    let h = Harness::new([turn(calls), done()], json!({})).await;
    let session = h.session().await;
    h.prompt(&session, "go").await;
    let base = format!("/outrigger/v1/conversation/{session}");
    for merge in [true, false] {
        let page = h
            .ok("GET", &format!("{base}/message?merge={merge}"), Value::Null)
            .await;
        assert!(page.to_string().len() < 100_000);
        let entries = page["entries"].as_array().unwrap();
        let keys: Vec<&str> = entries
            .iter()
            .map(|it| it["key"].as_str().unwrap())
            .collect();
        assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
        let kind = if merge {
            "tool_execution"
        } else {
            "tool_result"
        };
        let bash = entries
            .iter()
            .find(|it| it["message"]["messageType"] == kind)
            .unwrap();
        let cut = bash["shortened"].as_array().unwrap();
        assert!(!cut.is_empty(), "{bash}");
        for one in cut {
            let reference = one["ref"].as_str().unwrap();
            let whole = h.text("GET", &format!("{base}/content/{reference}")).await;
            assert_eq!(whole.len() as u64, one["bytes"].as_u64().unwrap());
            let at = one["at"].as_str().unwrap();
            let shown = bash["message"].pointer(at).unwrap().as_str().unwrap();
            assert!(
                whole.starts_with(shown) && shown.len() < whole.len(),
                "{at}"
            );
        }
        let prompt = &entries[0];
        assert_eq!(
            (&prompt["message"]["role"], &prompt["message"]["content"]),
            (&json!("user"), &json!("go"))
        );
        assert!(
            entries
                .iter()
                .all(|it| it["attempt"] == prompt["attempt"] && it["task"] == json!(session))
        );
    }
    let (status, _) = h
        .call("GET", &format!("{base}/content/nothing"), Value::Null)
        .await;
    assert_eq!(status, 404);
    let (status, _) = h
        .call(
            "GET",
            "/outrigger/v1/conversation/ses_none/message",
            Value::Null,
        )
        .await;
    assert_eq!(status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_has_a_trace_and_the_audit_has_it_too() {
    let h = Harness::new(
        [
            turn([call("read", json!({ "filePath": "hello.txt" }))]),
            done(),
        ],
        json!({}),
    )
    .await;
    let session = h.session().await;
    h.prompt(&session, "go").await;
    let base = format!("/outrigger/v1/conversation/{session}");
    let turns = h.ok("GET", &format!("{base}/turn"), Value::Null).await;
    let page = h.ok("GET", &format!("{base}/message"), Value::Null).await;
    assert_eq!(turns[0]["attempt"], page["entries"][0]["attempt"]);
    assert_eq!(turns[0]["open"], false);
    let path = format!("{base}/turn/{}", turns[0]["id"].as_str().unwrap());
    let trace = h.ok("GET", &path, Value::Null).await;
    let spans = trace["spans"].as_array().unwrap();
    let of = |kind: &str| spans.iter().filter(|it| it["kind"] == kind).count();
    assert_eq!((of("model"), of("tool")), (2, 1), "{trace}");
    let tool = spans.iter().find(|it| it["kind"] == "tool").unwrap();
    assert_eq!(
        (&tool["name"], &tool["state"]),
        (&json!("read"), &json!("ok"))
    );
    let other = h.session().await;
    let path = path.replace(&session, &other);
    assert_eq!(h.call("GET", &path, Value::Null).await.0, 404);
    let records = h
        .ok(
            "GET",
            "/outrigger/v1/audit?kind=tool_outcome&limit=5",
            Value::Null,
        )
        .await;
    assert_eq!(records[0]["sessionId"], json!(session), "{records}");
    assert_eq!(
        h.call("GET", "/outrigger/v1/audit?kind=none", Value::Null)
            .await
            .0,
        400
    );
    let verified = h.ok("GET", "/outrigger/v1/audit/verify", Value::Null).await;
    assert_eq!(verified["valid"], true, "{verified}");
    let plugins = h.ok("GET", "/outrigger/v1/plugin", Value::Null).await;
    assert!(plugins["plugins"].is_array());
    assert_eq!(
        h.ok("GET", &format!("{base}/diff"), Value::Null).await,
        json!([])
    );
}

/// The time of a question to the user is none of the tool's.
#[tokio::test(flavor = "multi_thread")]
async fn the_trace_has_how_long_a_call_waited_for_an_answer() {
    let command = json!({ "command": "true", "description": "x" });
    let h = Harness::new(
        [turn([call("bash", command)]), done()],
        json!({ "permission": { "bash": "ask" } }),
    )
    .await;
    let session = h.session().await;
    h.prompt_async(&session, "go").await;
    h.sees("permission.asked", 1).await;
    let open = h.ok("GET", "/permission", Value::Null).await;
    let id = open[0]["id"].as_str().unwrap();
    let once = json!({ "reply": "once" });
    h.ok("POST", &format!("/permission/{id}/reply"), once).await;
    h.sees("session.idle", 1).await;
    let base = format!("/outrigger/v1/conversation/{session}/turn");
    let turns = h.ok("GET", &base, Value::Null).await;
    let path = format!("{base}/{}", turns[0]["id"].as_str().unwrap());
    let trace = h.ok("GET", &path, Value::Null).await;
    let spans = trace["spans"].as_array().unwrap();
    let tool = spans.iter().find(|it| it["kind"] == "tool").unwrap();
    let waited = tool["facts"]["waitedMs"].as_f64();
    let took = tool["durationMs"].as_f64().unwrap();
    assert!(waited.is_some_and(|it| it <= took + 1.0), "{tool}");
}

/// E1: another agent's output is stored in a session like our own model's, each call as one message, and what its converter does not
/// know unchanged.
#[tokio::test(flavor = "multi_thread")]
async fn another_agent_feeds_the_same_conversation() {
    let h = Harness::new([done()], json!({})).await;
    let session = h.session().await;
    h.prompt(&session, "go").await;
    let base = format!("/outrigger/v1/conversation/{session}/message");
    let prompt = h.ok("GET", &base, Value::Null).await["entries"][0]["attempt"].clone();
    let message = AssistantMessage {
        parent_id: prompt.as_str().unwrap().into(),
        session_id: session.as_str().into(),
        agent: "claude".into(),
        mode: "claude".into(),
        ..AssistantMessage::default()
    };
    let now = outrigger_stdx::clock::now_ms;
    let (mut answer, begun) = ExternalAnswer::begin(message, 7, now());
    let id = answer.message().id.clone();
    let mut events = vec![begun];
    let text = |text: &str| AgentOutput::Text {
        text: text.into(),
        timestamp: 1,
    };
    let use_of = |id: &str, input: Value| AgentOutput::ToolUse {
        id: id.into(),
        tool_name: "Edit".into(),
        tool_input: input,
        timestamp: 10,
    };
    let edit = json!({ "file_path": "a", "old_string": "x", "new_string": "y" });
    let result = AgentOutput::ToolResult {
        tool_use_id: "t1".into(),
        tool_name: "Edit".into(),
        result: json!("ok"),
        is_error: false,
        timestamp: 35,
    };
    let unknown = AgentOutput::Other {
        text: "{\"type\":\"new\"}".into(),
        timestamp: 40,
    };
    for output in [
        text("I edit"),
        use_of("t1", edit),
        use_of("t2", json!({})),
        result,
        unknown,
    ] {
        events.extend(answer.say(output, now()));
    }
    let error = NamedError::new("UnknownError", "it went away");
    events.extend(answer.finish(Some(error), now()));
    for event in events {
        h.agent.publish(event).await.unwrap();
    }
    let page = h.ok("GET", &base, Value::Null).await;
    let own = page["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["key"].as_str().unwrap().starts_with(id.as_str()));
    let said: Vec<(&str, &str)> = own
        .map(|it| {
            assert_eq!((&it["attempt"], &it["state"]), (&prompt, &json!("done")));
            let message = &it["message"];
            (
                message["messageType"].as_str().unwrap(),
                message["content"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        said,
        [
            ("text", "I edit"),
            ("tool_execution", "Updated a"),
            ("tool_use", "Edit"),
            ("text", "{\"type\":\"new\"}"),
            ("error", "it went away"),
        ]
    );
    // OpenCode clients see it, too.
    let parts = h.parts(&session, "tool").await;
    assert_eq!(parts.len(), 2);
}
