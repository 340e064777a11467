//! A conversation of the browser extension goes to the native program, and from there back in the form that the extension takes
//! (`extension/tests/browser/handover.mjs` looks at its side, by the same form).

use outrigger_export::{opencode, select};
use outrigger_import::Program;
use serde_json::Value;

use crate::support::{import, read, store};

/// What the extension exported of a turn with calls that went well and one that did not.
const EXTENSION: &str = include_str!("../fixtures/extension-0.1.0.json");

/// Who said what, and what became of each call. Identifiers are the program's own.
fn said(document: &Value) -> Vec<String> {
    let messages = document["messages"].as_array().unwrap().iter();
    let parts = messages.flat_map(|message| {
        let role = message["info"]["role"].as_str().unwrap();
        message["parts"]
            .as_array()
            .unwrap()
            .iter()
            .map(move |part| match part["type"].as_str().unwrap() {
                "tool" => format!(
                    "{role} {} {}: {} {}",
                    part["tool"],
                    part["state"]["input"],
                    part["state"]["output"],
                    part["state"]["error"]
                ),
                kind => format!("{role} {kind} {}", part["text"]),
            })
    });
    parts.collect()
}

#[tokio::test]
async fn a_conversation_of_the_extension_is_whole_here_and_goes_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ses.json");
    std::fs::write(&file, EXTENSION).unwrap();
    let (transcripts, problems) = read(Program::Outrigger, &file);
    assert_eq!(problems, Vec::<String>::new());
    let store = store(folder.path());
    let sessions = import(&store, transcripts).await;
    let session = store.session(&sessions[0]).unwrap().unwrap();
    let stored = select(&store, session, true).unwrap().remove(0);
    let back: Value = serde_json::from_str(&opencode(stored).unwrap()).unwrap();
    let before: Value = serde_json::from_str(EXTENSION).unwrap();
    let (before, after) = (said(&before), said(&back));
    assert!(
        before
            .iter()
            .any(|it| it.contains("does not have the old text")),
        "{before:?}"
    );
    assert!(
        before.iter().any(|it| it.contains("Wrote 4 bytes")),
        "{before:?}"
    );
    assert_eq!(before, after);
    assert!(back["info"]["id"].as_str().unwrap().starts_with("ses_"));
    assert!(store.verify_chain().unwrap().faults.is_empty());
}
