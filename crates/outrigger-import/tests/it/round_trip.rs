//! An exported and imported conversation exports as the same document.

use outrigger_export::{Document, Page, html};
use outrigger_import::Program;
use outrigger_protocol::id::SessionId;
use outrigger_store::Store;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{document, import, read, store};

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
