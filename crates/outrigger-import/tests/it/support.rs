//! Helpers of the tests.

use std::collections::BTreeMap;
use std::path::Path;

use outrigger_export::{Document, markdown, select};
use outrigger_import::{
    Accepted, Destination, Problem, Program, Source, Transcript, accept, write,
};
use outrigger_protocol::id::SessionId;
use outrigger_store::Store;

/// Returns the destination folder.
pub(crate) fn here() -> Destination {
    Destination {
        directory: "/here".into(),
        path: String::new(),
        project_id: "global".into(),
        version: "1".into(),
        now: 1_800_000_000_000,
    }
}

/// Returns all sessions at a path, and what was skipped.
pub(crate) fn read(program: Program, path: &Path) -> (Vec<Transcript>, Vec<String>) {
    let mut problems: Vec<Problem> = Vec::new();
    let source = Source::open(program, path, &mut problems).unwrap();
    let found = source.found().iter();
    let read = found
        .map(|one| source.read(one, &mut problems).unwrap())
        .collect();
    let place = |it: &Problem| it.to_string().replace(&path.display().to_string(), "FILE");
    (read, problems.iter().map(place).collect())
}

pub(crate) fn accepted(transcript: Transcript) -> Accepted {
    accept(transcript, &here(), &BTreeMap::new())
}

/// Opens a store in a separate folder.
pub(crate) fn store(folder: &Path) -> Store {
    Store::open(&folder.join("store.db")).unwrap().0
}

/// Stores sessions, in their order.
pub(crate) async fn import(store: &Store, transcripts: Vec<Transcript>) -> Vec<SessionId> {
    let mut known: BTreeMap<String, SessionId> = BTreeMap::new();
    for transcript in transcripts {
        let foreign = transcript.id.clone();
        let accepted = accept(transcript, &here(), &known);
        known.insert(foreign, accepted.session.id.clone());
        write(store, accepted, here().now).await.unwrap();
    }
    known.into_values().collect()
}

/// Returns the exported document of a stored session, with its subagents.
pub(crate) fn document(store: &Store, session: &SessionId) -> Document {
    let session = store.session(session).unwrap().unwrap();
    Document::of(store, &select(store, session, true).unwrap()).unwrap()
}

pub(crate) fn shown(store: &Store, session: &SessionId) -> String {
    markdown(&document(store, session))
}
