//! Compaction: on demand and automatic, what stays, and failures. For hooks, kills and the command line, see `compact.rs`
//! of outrigger-cli.

use outrigger_test_support::model::{Mock, call, done, text, turn};
use serde_json::{Value, json};

use crate::harness::Harness;

/// Returns a turn whose request used this many tokens.
fn filled(mut turn: Value, tokens: u64) -> Value {
    turn["usage"] = json!([tokens, 10]);
    turn
}

fn read_hello() -> Value {
    turn([call("read", json!({ "filePath": "hello.txt" }))])
}

fn refusal() -> Value {
    json!({ "status": 400, "error": "This model's maximum context length is 100 tokens." })
}

async fn harness(mock: Mock, config: Value) -> Harness {
    Harness::unattended(mock, config, |_| {}).await
}

/// Sends `/compact` in a session, and returns status and body.
async fn compact(h: &Harness, session: &str) -> (u16, Value) {
    let path = format!("/session/{session}/command");
    h.call(
        "POST",
        &path,
        json!({ "command": "compact", "arguments": "" }),
    )
    .await
}

/// Returns the roles of the session's messages, with `summary` and `compaction` for those of a compaction.
async fn roles(h: &Harness, session: &str) -> Vec<String> {
    let role = |message: &Value| {
        let compaction = message["parts"][0]["type"] == "compaction";
        match &message["info"]["role"] {
            _ if compaction => "compaction".to_owned(),
            _ if message["info"]["summary"] == true => "summary".to_owned(),
            role => role.as_str().unwrap().to_owned(),
        }
    };
    h.messages(session).await.iter().map(role).collect()
}

/// Returns the texts of a request after its system prompt, as `role: text`.
fn said(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().unwrap();
    let line = |message: &Value| {
        let text = match &message["content"] {
            Value::Array(parts) => parts
                .iter()
                .filter_map(|part| part["text"].as_str())
                .collect::<Vec<_>>()
                .join("+"),
            other => other.as_str().unwrap_or_default().to_owned(),
        };
        format!("{}: {text}", message["role"].as_str().unwrap())
    };
    let not_system = |message: &&Value| message["role"] != "system";
    messages.iter().filter(not_system).map(line).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn on_demand_the_summary_takes_the_place_of_the_history() {
    let config = json!({ "compaction": { "tail_turns": 0 } });
    let h = harness(Mock::new([text("one"), text("two")]), config).await;
    let session = h.session().await;
    h.prompt(&session, "first-question").await;
    assert_eq!(compact(&h, &session).await.0, 200);
    let request = h.mock.last();
    assert!(request.is_summary);
    assert!(request.tools().is_empty());
    let asked = said(&request.body);
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(
        asked[0].contains("[User]: first-question\n\n[Assistant]: one"),
        "{asked:?}"
    );

    h.prompt(&session, "second-question").await;
    assert_eq!(
        said(&h.mock.last().body),
        [
            "user: What did we do so far?",
            "assistant: The summary.",
            "user: second-question"
        ]
    );
    assert_eq!(
        roles(&h, &session).await,
        [
            "user",
            "assistant",
            "compaction",
            "summary",
            "user",
            "assistant"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_is_compacted_and_asked_again() {
    let mock = Mock::new([text("one"), refusal(), text("two")]);
    let h = harness(mock, json!({})).await;
    let session = h.session().await;
    h.prompt(&session, "first-question").await;
    let answer = h.prompt(&session, "second-question").await;
    assert!(answer.to_string().contains("\"two\""), "{answer}");
    assert_eq!(
        roles(&h, &session).await,
        [
            "user",
            "assistant",
            "user",
            "assistant",
            "compaction",
            "summary",
            "user",
            "assistant"
        ]
    );
    let part = &h.parts(&session, "compaction").await[0];
    assert_eq!(
        (&part["auto"], &part["overflow"]),
        (&json!(true), &json!(true))
    );
    let requests = h.mock.requests();
    let asked = said(&requests[2].body);
    assert!(
        !asked[0].contains("second-question"),
        "what did not fit is asked again: {asked:?}"
    );
    assert_eq!(
        said(&requests[3].body),
        [
            "user: What did we do so far?",
            "assistant: The summary.",
            "user: second-question"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_that_is_full_again_at_once_is_not_compacted_again() {
    // What fills it is not part of the history, so no summary would help.
    let full = |turn| filled(turn, 97_000);
    let mock = Mock::new([full(read_hello()), full(done())]);
    let h = harness(mock, json!({})).await;
    let session = h.session().await;
    let answer = h.prompt(&session, "go").await;
    assert!(answer.to_string().contains("All done."), "{answer}");
    let roles = roles(&h, &session).await;
    let summaries = roles.iter().filter(|role| *role == "summary").count();
    assert_eq!(summaries, 1, "{roles:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_wrong_leaves_the_history_as_it_was() {
    let table = [
        ("empty", json!({ "text": " " }), "wrote no summary"),
        ("too long", refusal(), "too long to be summarised"),
        ("a call", read_hello(), "called the tool `read`"),
        (
            "refused",
            json!({ "status": 401, "error": "bad key" }),
            "bad key",
        ),
    ];
    for (name, answer, want) in table {
        let mock = Mock::new([text("one"), text("two")]).summaries([answer]);
        let h = harness(mock, json!({})).await;
        let session = h.session().await;
        h.prompt(&session, "first-question").await;
        let (_, failed) = compact(&h, &session).await;
        let error = failed["info"]["error"].to_string();
        assert!(error.contains(want), "{name}: {failed}");
        h.prompt(&session, "second-question").await;
        assert_eq!(
            said(&h.mock.last().body),
            [
                "user: first-question",
                "assistant: one",
                "user: second-question"
            ],
            "{name}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_with_nothing_to_compact_is_refused() {
    let h = harness(Mock::new([text("one")]), json!({})).await;
    let session = h.session().await;
    let refused = |(status, body): (u16, Value)| {
        assert_eq!(status, 400, "{body}");
        assert!(body.to_string().contains("nothing to compact"), "{body}");
    };
    refused(compact(&h, &session).await);
    h.prompt(&session, "first-question").await;
    assert_eq!(compact(&h, &session).await.0, 200);
    refused(compact(&h, &session).await);
    assert_eq!(h.mock.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_summary_builds_on_the_first() {
    let summaries = [text("Summary one."), text("Summary two.")];
    let mock = Mock::new([text("one"), text("two")]).summaries(summaries);
    let h = harness(mock, json!({ "compaction": { "tail_turns": 0 } })).await;
    let session = h.session().await;
    h.prompt(&session, "first-question").await;
    compact(&h, &session).await;
    h.prompt(&session, "second-question").await;
    compact(&h, &session).await;
    let asked = said(&h.mock.last().body).remove(0);
    assert!(
        asked.contains("<earlier-summary>\nSummary one.\n</earlier-summary>"),
        "{asked}"
    );
    assert!(!asked.contains("first-question"), "{asked}");
    h.prompt(&session, "third-question").await;
    assert_eq!(
        said(&h.mock.last().body),
        [
            "user: What did we do so far?",
            "assistant: Summary two.",
            "user: third-question"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_compaction_agent_has_its_own_model() {
    let model =
        json!({ "name": "M2", "tool_call": true, "limit": { "context": 100_000, "output": 4000 } });
    let config = json!({
        "provider": { "mock": { "models": { "m2": model } } },
        "agent": { "compaction": { "model": "mock/m2", "prompt": "SUM-IT-UP" } },
    });
    let h = harness(Mock::new([text("one")]), config).await;
    let session = h.session().await;
    h.prompt(&session, "first-question").await;
    compact(&h, &session).await;
    let request = h.mock.last();
    assert_eq!(request.body["model"], "m2");
    assert_eq!(request.texts("system"), ["SUM-IT-UP"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn old_tool_output_is_pruned_when_it_is_configured() {
    let big = |n: usize| {
        let command = format!("head -c 45000 /dev/zero | tr '\\0' x; echo {n}");
        turn([call(
            "bash",
            json!({ "command": command, "description": "x" }),
        )])
    };
    let turns: Vec<Value> = (0..12).flat_map(|n| [big(n), text("ok")]).collect();
    let config = json!({ "compaction": { "prune": true, "auto": false } });
    let h = harness(Mock::new(turns), config).await;
    let session = h.session().await;
    for _ in 0..8 {
        h.prompt(&session, "more").await;
    }
    let pruned = |part: &Value| part["state"]["time"]["compacted"].is_u64();
    let calls = h.parts(&session, "tool").await;
    let marked = calls.iter().take_while(|part| pruned(part)).count();
    assert!(
        marked >= 2 && !calls[marked..].iter().any(pruned),
        "{marked} of {}",
        calls.len()
    );
    let results = h.mock.last().texts("tool");
    assert_eq!(results[0], "[Old tool result content cleared]");
    assert!(results.last().unwrap().contains("xxxx"));
}

/// The history is unchanged, and the next summary works.
#[tokio::test(flavor = "multi_thread")]
async fn a_summary_that_is_being_written_is_given_up() {
    let stalled = json!({ "text": "The summary that never ends", "stall": 2 });
    let mock = Mock::new([done()]).summaries([stalled, text("The summary.")]);
    let h = harness(mock, json!({})).await;
    let session = h.session().await;
    h.prompt(&session, "go").await;
    let abort = async {
        while !h.mock.all_requests().iter().any(|r| r.is_summary) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let path = format!("/session/{session}/abort");
        assert_eq!(h.ok("POST", &path, Value::Null).await, json!(true));
    };
    tokio::join!(compact(&h, &session), abort);
    let messages = h.messages(&session).await;
    let errors: Vec<&Value> = messages
        .iter()
        .map(|message| &message["info"]["error"]["name"])
        .filter(|name| !name.is_null())
        .collect();
    assert_eq!(errors, ["MessageAbortedError"]);
    h.prompt(&session, "go").await;
    let sent = h.mock.last().body.to_string();
    assert!(!sent.contains("never ends"), "{sent}");
    assert_eq!(compact(&h, &session).await.0, 200);
}
