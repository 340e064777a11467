//! The message mirror and the file channel give the same results as sending everything inline (A10, A14,
//! A15).

use outrigger_kernel::hooks::HookPoint;
use outrigger_plugins::{PipelineContext, Plugins};
use outrigger_protocol::history::HistoryMessage;
use outrigger_protocol::hook::CarriedBy;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::MessageWithParts;
use outrigger_protocol::turn::HookPayload;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::Project;

const POINT: HookPoint = HookPoint::LlmBeforeMessages;

/// Does what the last message tells it to do: `{script: {NAME: [[operation, place, value]..]}}`.
const SCRIPTED: &str = r#"let held = [];
export default async () => ({
  "experimental.chat.messages.transform": async (input, output) => {
    const { messages } = output;
    const script = messages.at(-1)?.script?.NAME ?? [];
    // What it held on to from earlier calls is nobody's any more.
    for (const message of held) if (message?.info) message.info.late = Math.random();
    held = [];
    for (const [operation, at, value] of script) {
      const list = output.messages;
      const i = list.length ? at % list.length : 0;
      const message = list[i];
      switch (operation) {
        case "remove": list.splice(i, 1 + (at % 3)); break;
        case "insert": list.splice(i, 0, value); break;
        case "push": list.push(value); break;
        case "reverse": list.reverse(); break;
        case "sort": list.sort((a, b) => String(a?.info?.id).localeCompare(String(b?.info?.id))); break;
        case "replace": list[i] = value; break;
        case "again": list.push(message); break;
        case "copy": list[i] = structuredClone(message); break;
        case "copies": output.messages = list.map((one) => structuredClone(one)); break;
        case "filter": output.messages = list.filter((_, index) => index !== i); break;
        case "text": if (message?.parts?.[0]) message.parts[0].text = String(value); break;
        case "part": message?.parts?.push?.({ type: "text", text: "more", value }); break;
        case "key": if (message?.info) message.info[String(at)] = value; break;
        case "delete": if (message?.info) delete message.info.role; break;
        case "hole": list.length += 1; break;
        case "freeze": Object.freeze(output); break;
        case "input": input.left = value; break;
        case "hold": held.push(message); break;
        case "throw": throw new Error("on purpose");
        case "die": process.exit(1);
        case "none": output.messages = []; break;
      }
    }
  },
});"#;

async fn load(project: &mut Project, mirror: bool, files: bool) -> Plugins {
    project.settings.mirror = mirror;
    project.settings.file_ipc = files;
    project.settings.inline_bytes = 300;
    project.settings.deadlines.normal = std::time::Duration::from_secs(30);
    let specs = ["a", "b"].map(|name| {
        let source = SCRIPTED.replace("NAME", name);
        project.plugin(name, &source)
    });
    project.load(specs.to_vec()).await
}

/// As the store would have it, where the JSON is all of a message; else as a plugin would have left it.
fn shared(message: &Value) -> HistoryMessage {
    let stored = MessageWithParts::deserialize(message).ok();
    // By their texts: keys in another order make another message.
    let text = message.to_string();
    stored
        .filter(|stored| serde_json::to_string(stored).unwrap() == text)
        .map_or_else(|| message.clone().into(), HistoryMessage::from)
}

/// With the messages as a conversation.
async fn transform(plugins: &Plugins, session: &str, messages: &[Value]) -> (Value, Vec<String>) {
    let history = messages.iter().map(shared).collect();
    let item = HookPayload::with_history(json!({}), history);
    run(plugins, session, item).await
}

/// With the messages as any other field: what there is to compare with.
async fn plain(plugins: &Plugins, session: &str, messages: &[Value]) -> (Value, Vec<String>) {
    let item = HookPayload::new(json!({}), json!({ "messages": messages }));
    run(plugins, session, item).await
}

async fn run(plugins: &Plugins, session: &str, item: HookPayload) -> (Value, Vec<String>) {
    let (output, outcomes, _) = run_by(plugins, session, item).await;
    (output, outcomes)
}

/// With the way that the payload took to each of them.
async fn run_by(
    plugins: &Plugins,
    session: &str,
    item: HookPayload,
) -> (Value, Vec<String>, Vec<CarriedBy>) {
    let context = PipelineContext {
        session: Some(SessionId(session.into())),
        ..PipelineContext::default()
    };
    let mut result = plugins.pipeline().run(POINT, vec![item], context).await;
    let ways = result
        .records
        .iter()
        .map(|record| record.carried.unwrap().way)
        .collect();
    let outcomes = result
        .records
        .iter()
        .map(|record| format!("{} {}", record.outcome, record.payload_bytes))
        .collect();
    let mut output = result.outputs.remove(0);
    if let Some(history) = result.history {
        output["messages"] = json!(history);
    }
    (output, outcomes, ways)
}

fn message(id: usize, text: &str) -> Value {
    json!({
        "info": {
            "role": "user", "id": format!("msg_{id}"), "sessionID": "ses_1", "time": {"created": id}, "agent": "build",
            "model": {"providerID": "test", "modelID": "test-model"},
        },
        "parts": [{"id": format!("prt_{id}"), "sessionID": "ses_1", "messageID": format!("msg_{id}"), "type": "text", "text": text}],
    })
}

fn operation() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "remove", "insert", "push", "reverse", "sort", "replace", "again", "copy", "copies",
        "filter", "text", "part", "key", "delete", "hole", "freeze", "input", "hold", "throw",
        "none",
    ]);
    let values = prop::sample::select(vec![
        json!(null),
        json!("text"),
        json!(0.5),
        json!({"info": {"id": "msg_1"}, "parts": []}),
        json!({"info": {"id": "msg_2", "role": "user", "__proto__": {"x": 1}}, "parts": [{"text": "\u{1f600}"}]}),
        json!([1, [2]]),
    ]);
    (names, 0_usize..12, values).prop_map(|(name, at, value)| json!([name, at, value]))
}

/// What happens to the history before a call, and what the two plugins do in it.
#[derive(Clone, Debug)]
struct Step {
    session: bool,
    history: Vec<(u8, usize)>,
    a: Vec<Value>,
    b: Vec<Value>,
}

fn step() -> impl Strategy<Value = Step> {
    let edits = || prop::collection::vec(operation(), 0..3);
    let history = prop::collection::vec((0_u8..6, 0_usize..10), 0..3);
    (prop::bool::weighted(0.8), history, edits(), edits()).prop_map(|(session, history, a, b)| {
        Step {
            session,
            history,
            a,
            b,
        }
    })
}

fn change(messages: &mut Vec<Value>, next: &mut usize, (what, at): (u8, usize)) {
    *next += 1;
    let at = at % messages.len().max(1);
    match what {
        0 | 1 => messages.push(message(*next, "new")),
        2 if !messages.is_empty() => messages[at]["parts"][0]["text"] = json!(format!("{next}")),
        3 if !messages.is_empty() => {
            messages.remove(at);
        }
        4 => messages.insert(at, message(*next, "between")),
        5 => messages.rotate_left(at),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_histories_and_plugins_do_the_result_is_that_of_inline() {
    let mut projects = [Project::new(), Project::new(), Project::new()];
    let [inline, mirrored, filed] = &mut projects;
    let inline = load(inline, false, false).await;
    let mirrored = load(mirrored, true, true).await;
    let filed = load(filed, false, true).await;
    let handle = tokio::runtime::Handle::current();
    let cases = std::sync::atomic::AtomicUsize::new(0);
    let steps = prop::collection::vec(step(), 1..5);
    let mut runner = TestRunner::new(Config {
        cases: 150,
        max_shrink_iters: 200,
        failure_persistence: None,
        ..Config::default()
    });
    let done = tokio::task::block_in_place(|| {
        runner.run(&steps, |steps| {
            let case = cases.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let mut next = 4;
            let mut messages: Vec<Value> = (1..5).map(|id| message(id, "first")).collect();
            // Texts that go apart in files.
            messages.push(message(98, &"\"a\nb\u{e4}\"".repeat(60)));
            messages.push(message(99, &"line \"x\"\t\n".repeat(60)));
            for step in steps {
                for edit in step.history {
                    change(&mut messages, &mut next, edit);
                }
                let session = format!("ses_{case}_{}", step.session);
                let mut sent = messages.clone();
                sent.push(json!({"script": {"a": step.a, "b": step.b}}));
                let a = handle.block_on(plain(&inline, &session, &sent));
                let [b, c, d] = [&mirrored, &filed, &inline]
                    .map(|plugins| handle.block_on(transform(plugins, &session, &sent)));
                prop_assert_eq!(&a.0, &b.0);
                prop_assert_eq!(&a.0, &c.0);
                prop_assert_eq!(&a.0, &d.0);
                prop_assert_eq!(&a.1, &b.1);
                prop_assert_eq!(&a.1, &c.1);
                prop_assert_eq!(&a.1, &d.1);
            }
            Ok(())
        })
    });
    done.unwrap();
}

#[tokio::test]
async fn a_large_history_goes_by_file_and_comes_back_changed() {
    for mirror in [false, true] {
        let mut project = Project::new();
        let plugins = load(&mut project, mirror, true).await;
        let mut messages: Vec<Value> = (0..400).map(|id| message(id, &"x".repeat(5000))).collect();
        messages
            .push(json!({"script": {"a": [["text", 7, "changed"]], "b": [["remove", 3, null]]}}));
        for _ in 0..2 {
            let history = messages.iter().map(shared).collect();
            let item = HookPayload::with_history(json!({}), history);
            let (output, outcomes, ways) = run_by(&plugins, "ses_large", item).await;
            let way = if mirror {
                CarriedBy::Mirror
            } else {
                CarriedBy::File
            };
            assert!(ways.iter().all(|it| *it == way), "{mirror}: {ways:?}");
            let list = output["messages"].as_array().unwrap();
            assert_eq!(list.len(), 400, "{outcomes:?}");
            assert_eq!(list[6]["parts"][0]["text"], "changed");
            assert!(outcomes.iter().all(|outcome| outcome.starts_with("ok ")));
        }
    }
}

#[tokio::test]
async fn a_process_that_was_started_again_gets_the_whole() {
    let mut project = Project::new();
    let plugins = load(&mut project, true, true).await;
    let mut messages = vec![message(1, "one"), message(2, "two")];
    transform(&plugins, "ses_1", &messages).await;
    let mut last = messages.clone();
    last.push(json!({"script": {"b": [["die", 0, null]]}}));
    let (_, outcomes) = transform(&plugins, "ses_1", &last).await;
    assert!(outcomes[1].starts_with("lost "), "{outcomes:?}");
    messages.push(json!({"script": {"a": [["text", 0, "changed"]]}}));
    let (output, outcomes) = transform(&plugins, "ses_1", &messages).await;
    assert_eq!(output["messages"][0]["parts"][0]["text"], "changed");
    assert!(
        outcomes.iter().all(|outcome| outcome.starts_with("ok ")),
        "{outcomes:?}"
    );
}

#[tokio::test]
async fn a_session_that_the_process_has_dropped_is_given_whole() {
    let mut project = Project::new();
    let plugins = load(&mut project, true, true).await;
    let mut messages = vec![message(1, "one"), message(2, "two")];
    // More than a process keeps.
    for session in 0..20 {
        transform(&plugins, &format!("ses_{session}"), &messages).await;
    }
    messages.push(json!({"script": {"b": [["text", 1, "changed"]]}}));
    let (output, outcomes) = transform(&plugins, "ses_0", &messages).await;
    assert_eq!(output["messages"][1]["parts"][0]["text"], "changed");
    assert!(
        outcomes.iter().all(|outcome| outcome.starts_with("ok ")),
        "{outcomes:?}"
    );
}
