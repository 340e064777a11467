//! An exported and imported conversation exports as the same document.

use outrigger_export::{Document, Page, html};
use outrigger_import::{Outcome, Program, outlook, write};
use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::id::{IdMaker, SessionId};
use outrigger_protocol::log::LogRecord;
use outrigger_protocol::message::{
    AssistantMessage, MessageInfo, MessageTime, Part, PartKind, TextPart, UserMessage,
};
use outrigger_protocol::session::Session;
use outrigger_store::Store;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{accepted, document, import, read, shown, store};

/// Generates a text that may be hard to represent in some form.
fn word() -> BoxedStrategy<String> {
    prop_oneof![
        Just("plain".to_owned()),
        Just("two\nlines\n".to_owned()),
        Just("</script><!--".to_owned()),
        Just("````\n~~~\n> # x".to_owned()),
        Just("\u{1b}[31m\u{202e}ä\u{2028}".to_owned()),
        "[a-z<>&`\"\\\\*_\n ]{0,12}",
    ]
    .boxed()
}

fn call(tool: &'static str, input: Value, metadata: Value, output: String, failed: bool) -> Value {
    let time = json!({ "start": 10, "end": 15 });
    let state = if failed {
        json!({ "status": "error", "input": input, "error": output, "metadata": metadata, "time": time })
    } else {
        json!({ "status": "completed", "input": input, "output": output, "title": "", "metadata": metadata, "time": time })
    };
    json!({ "type": "tool", "callID": "c", "tool": tool, "state": state })
}

fn part() -> impl Strategy<Value = Value> {
    let words = (word(), word(), any::<bool>());
    prop_oneof![
        word().prop_map(|text| json!({ "type": "text", "text": text, "time": { "start": 3, "end": 4 } })),
        word().prop_map(|text| json!({ "type": "text", "text": text, "ignored": true })),
        word().prop_map(|text| json!({ "type": "reasoning", "text": text, "time": { "start": 3, "end": 4 } })),
        words.clone().prop_map(|(a, b, failed)| call("bash", json!({ "command": a }), json!({ "stdout": b, "stderr": a, "exit": 1 }), b, failed)),
        words.clone().prop_map(|(a, b, failed)| call("edit", json!({ "filePath": "/a" }), json!({ "filediff": { "before": a, "after": b }, "exists": failed }), b, failed)),
        words.clone().prop_map(|(a, b, failed)| call("write", json!({ "filePath": "/a", "content": a }), json!({}), b, failed)),
        words.clone().prop_map(|(a, b, failed)| call("read", json!({ "filePath": "/a" }), json!({ "display": { "type": "directory", "entries": [a] } }), b, failed)),
        words.clone().prop_map(|(a, b, failed)| call("glob", json!({ "pattern": a }), json!({}), format!("/x\n./y\n{b}"), failed)),
        words.clone().prop_map(|(a, b, failed)| call("todowrite", json!({}), json!({ "todos": [{ "content": a, "status": "pending", "priority": "low" }] }), b, failed)),
        words.clone().prop_map(|(a, b, failed)| call("mine", json!({ "x": [a] }), json!({ "summary": "done", "details": { "type": "fileList", "data": { "files": [b] } } }), b, failed)),
        any::<bool>().prop_map(|failed| {
            let patch = "@@ -1,2 +1,2 @@\n one\n-two\n+2\n";
            let file = |name: &str, kind: &str| json!({ "relativePath": name, "type": kind, "patch": patch });
            call("apply_patch", json!({}), json!({ "files": [file("a", "add"), file("b", "delete"), file("c", "update")] }), "ok".into(), failed)
        }),
        Just(json!({ "type": "patch", "hash": "h", "files": ["/a", "/b"] })),
        Just(json!({ "type": "step-finish", "reason": "stop", "cost": 0.25, "tokens": { "input": 1, "output": 2, "reasoning": 0, "cache": { "read": 3, "write": 0 } } })),
        Just(json!({ "type": "file", "mime": "image/png", "filename": "a.png", "url": "data:image/png;base64,AA" })),
    ]
}

fn session() -> impl Strategy<Value = Value> {
    let turn = (word(), prop::collection::vec(part(), 0..5), any::<bool>());
    prop::collection::vec(turn, 1..5).prop_map(|turns| {
        let messages: Vec<Value> = turns.into_iter().enumerate().flat_map(|(n, (prompt, parts, failed))| {
            let (asked, answer) = (format!("msg_{}", 2 * n), format!("msg_{}", 2 * n + 1));
            let error = failed.then(|| json!({ "name": "APIError", "data": { "message": "no" } }));
            [
                json!({ "info": { "role": "user", "id": asked, "time": { "created": 2 } }, "parts": [{ "type": "text", "text": prompt }] }),
                json!({ "info": { "role": "assistant", "id": answer, "parentID": asked, "time": { "created": 3, "completed": 20 }, "error": error }, "parts": parts }),
            ]
        }).collect();
        json!({ "info": { "id": "ses_1", "title": "t", "directory": "/d", "time": { "created": 1, "updated": 2 } }, "messages": messages })
    })
}

/// Imports a file into a separate store, and returns its session.
async fn through(text: &str) -> (tempfile::TempDir, Store, SessionId) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.json");
    std::fs::write(&file, text).unwrap();
    let (transcripts, problems) = read(Program::Outrigger, &file);
    assert_eq!(problems, Vec::<String>::new());
    let store = store(folder.path());
    let session = import(&store, transcripts).await.remove(0);
    (folder, store, session)
}

async fn again(first: &Document) -> Document {
    let (_folder, store, session) = through(&serde_json::to_string(first).unwrap()).await;
    document(&store, &session)
}

/// Replaces each identifier by the place of its first occurrence, since identifiers are reassigned.
fn without_ids(document: &Document) -> Value {
    let mut text = serde_json::to_string(document).unwrap();
    let mut ids: Vec<String> = Vec::new();
    for entry in document.conversations.iter().flat_map(|it| &it.entries) {
        let (message, part) = entry.key.split_once('/').unwrap();
        for id in [message, part] {
            if !ids.iter().any(|it| it == id) && id.len() > 10 {
                ids.push(id.to_owned());
            }
        }
    }
    for (n, id) in ids.iter().enumerate() {
        text = text.replace(id.as_str(), &format!("id{n}"));
    }
    serde_json::from_str(&text).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn what_was_exported_and_imported_exports_the_same_again(session in session()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (_folder, store, id) = through(&session.to_string()).await;
            let first = document(&store, &id);
            let second = again(&first).await;
            assert_eq!(without_ids(&second), without_ids(&first));
            // From then on, identifiers are the same as well.
            assert_eq!(again(&second).await, second);
        });
    }
}

/// Appends a prompt and its answer, as a turn here does.
async fn said(store: &Store, session: &SessionId, at: u64, words: &str) {
    let mut ids = IdMaker::new(at);
    let (asked, answer) = (ids.message(at), ids.message(at));
    let user = UserMessage {
        id: asked.clone(),
        session_id: session.clone(),
        time: MessageTime {
            created: at,
            completed: None,
        },
        ..UserMessage::default()
    };
    let assistant = AssistantMessage {
        id: answer,
        session_id: session.clone(),
        parent_id: asked,
        time: MessageTime {
            created: at + 1,
            completed: Some(at + 2),
        },
        ..AssistantMessage::default()
    };
    let mut events = Vec::new();
    for (info, text) in [
        (MessageInfo::User(user), format!("{words}?")),
        (MessageInfo::Assistant(assistant), format!("{words}!")),
    ] {
        let part = Part {
            id: ids.part(at),
            session_id: session.clone(),
            message_id: info.id().clone(),
            kind: PartKind::Text(TextPart {
                text,
                ..TextPart::default()
            }),
        };
        events.push(Event::MessageUpdated {
            session_id: session.clone(),
            info: Box::new(info),
        });
        events.push(Event::PartUpdated {
            session_id: session.clone(),
            part: Box::new(part),
            time: at,
        });
    }
    append(store, at, events).await;
}

async fn append(store: &Store, at: u64, events: Vec<Event>) {
    let mut ids = IdMaker::new(at);
    let records = events.into_iter().map(|event| {
        LogRecord::Event(Box::new(BusEvent {
            id: ids.event(at),
            event,
        }))
    });
    store.append(at, records.collect()).await.unwrap();
}

/// Imports an export into a store, and returns what became of its session.
async fn back(store: &Store, document: &Document) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.json");
    std::fs::write(&file, serde_json::to_string(document).unwrap()).unwrap();
    let transcript = read(Program::Outrigger, &file).0.remove(0);
    let looked = outlook(store, &accepted(transcript.clone())).unwrap();
    let done = write(store, accepted(transcript), 9).await.unwrap();
    assert_eq!(done, looked);
    done
}

/// A session and exports of itself: of now, of earlier, and of another machine on which it went on.
#[tokio::test]
async fn an_export_of_a_session_that_is_here_adds_only_what_is_new() {
    const AT: u64 = 1_790_000_000_000;
    let places = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [here, there] = [store(places[0].path()), store(places[1].path())];
    let id: SessionId = "ses_e0021b1d4ffeO44iN37LlQ5HLf".into();
    let session = Session {
        id: id.clone(),
        title: "t".into(),
        directory: "/here".into(),
        ..Session::default()
    };
    let created = Event::SessionCreated {
        session_id: id.clone(),
        info: Box::new(session),
    };
    append(&here, AT, vec![created]).await;
    said(&here, &id, AT, "one").await;

    let early = document(&here, &id);
    let unchanged = async |store: &Store, export: &Document| {
        let before = document(store, &id);
        assert_eq!(back(store, export).await, Outcome::There(id.clone()));
        assert_eq!(document(store, &id), before);
    };
    unchanged(&here, &early).await;
    said(&here, &id, AT + 10, "two").await;
    unchanged(&here, &early).await;
    assert_eq!(
        back(&there, &document(&here, &id)).await,
        Outcome::Imported(id.clone())
    );
    unchanged(&there, &early).await;
    said(&there, &id, AT + 20, "three").await;
    let grown = document(&there, &id);
    unchanged(&there, &grown).await;

    let two = Outcome::Grown {
        id: id.clone(),
        messages: 2,
        parts: 0,
    };
    assert_eq!(back(&here, &grown).await, two);
    unchanged(&here, &grown).await;
    said(&here, &id, AT + 30, "four").await;
    let last = document(&here, &id);
    unchanged(&here, &last).await;
    assert_eq!(back(&there, &last).await, two);
    unchanged(&there, &last).await;
    for store in [&here, &there] {
        let shown = shown(store, &id);
        let words = ["one", "two", "three", "four"].map(|it| [format!("{it}?"), format!("{it}!")]);
        let words = words.as_flattened();
        let count = |it: &String| shown.matches(it.as_str()).count();
        assert!(words.iter().all(|it| count(it) == 1), "{shown}");
        let order = words.iter().map(|it| shown.find(it.as_str()));
        assert!(order.is_sorted(), "{shown}");
    }

    // Another conversation with this identifier changes nothing.
    let mut other = last.clone();
    for entry in &mut other.conversations[0].entries {
        entry.message.content = format!("not {}", entry.message.content);
        entry.key = format!("x{}", entry.key);
    }
    let before = document(&here, &id);
    assert_eq!(back(&here, &other).await, Outcome::Differs(id.clone()));
    assert_eq!(document(&here, &id), before);

    // Nor does a longer one that somebody imports into another folder.
    said(&there, &id, AT + 40, "five").await;
    let longer = document(&there, &id);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.json");
    std::fs::write(&file, serde_json::to_string(&longer).unwrap()).unwrap();
    let mut taken = accepted(read(Program::Outrigger, &file).0.remove(0));
    let directory = std::mem::replace(&mut taken.session.directory, "/elsewhere".to_owned());
    let refused = Outcome::Elsewhere {
        id: id.clone(),
        directory,
    };
    assert_eq!(outlook(&here, &taken).unwrap(), refused);
    assert_eq!(write(&here, taken, 9).await.unwrap(), refused);
    assert_eq!(document(&here, &id), before);
}

/// A message of a file is not dated behind what is said here later: it would stay the last word.
#[tokio::test]
async fn nothing_of_a_file_is_of_the_future() {
    let far = 4_000_000_000_000_u64;
    let session = json!({
        "info": { "id": "ses_1", "title": "t", "directory": "/there", "time": { "created": far, "updated": far } },
        "messages": [{ "info": { "role": "user", "id": "msg_1", "time": { "created": far } }, "parts": [{ "type": "text", "text": "hello" }] }],
    });
    let (_folder, store, id) = through(&session.to_string()).await;
    let messages = store.messages(&id).unwrap();
    let MessageInfo::User(prompt) = &messages[0].info else {
        panic!("{messages:?}")
    };
    assert!(prompt.time.created < far / 2, "{prompt:?}");
}

/// A session of this program, imported elsewhere, has the exported one as its origin; what was another program's before stays so.
#[tokio::test]
async fn an_imported_export_names_the_session_that_it_is_of() {
    let session = json!({
        "info": { "id": "ses_1", "title": "t", "directory": "/there", "time": { "created": 1, "updated": 2 } },
        "messages": [{ "info": { "role": "user", "id": "msg_1" }, "parts": [{ "type": "text", "text": "hello" }] }],
    });
    let (_folder, store, id) = through(&session.to_string()).await;
    let mut exported = document(&store, &id);
    exported.conversations[0].origin = None;
    let origin = |of: &Document| of.conversations[0].origin.clone().unwrap();
    let first = again(&exported).await;
    assert_eq!(origin(&first).to_string(), format!("Outrigger {id}"));
    assert_eq!(origin(&first).directory, "/here");
    assert_eq!(origin(&again(&first).await), origin(&first));
}

/// Text inside a page closes none of its elements.
#[tokio::test]
async fn a_page_holds_a_hostile_conversation_as_data() {
    let text = "</script><script>alert(1)</script><!--";
    let session = json!({
        "info": { "id": "ses_1", "title": text, "directory": text, "time": { "created": 1, "updated": 2 } },
        "messages": [{ "info": { "role": "user", "id": "msg_1" }, "parts": [{ "type": "text", "text": text }] }],
    });
    let (_folder, store, id) = through(&session.to_string()).await;
    let document = document(&store, &id);
    let page = Page {
        script: "run()".into(),
        style: "b{}".into(),
    };
    let file = html(&document, &page).unwrap();
    let lower = file.to_ascii_lowercase();
    assert_eq!(
        (
            lower.matches("<script").count(),
            lower.matches("</script").count()
        ),
        (2, 2),
        "{file}"
    );
    assert!(!lower.contains("<!--"));
    let data = file
        .split_once("id=\"data\">")
        .unwrap()
        .1
        .split_once("</script>")
        .unwrap()
        .0;
    assert_eq!(serde_json::from_str::<Document>(data).unwrap(), document);
}
