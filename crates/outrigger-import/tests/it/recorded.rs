//! What the real programs stored.

use std::fs;
use std::path::Path;

use outrigger_export::{Page, html, markdown, opencode, select};
use outrigger_import::{Outcome, Program, Source, write};
use rusqlite::Connection;

use crate::support::{accepted, document, import, read, shown, store};

const CLAUDE: &str = include_str!("../fixtures/claude-2.1.197.jsonl");
const CODEX: &str = include_str!("../fixtures/codex-0.171.0.jsonl");
const OPENCODE: &str = include_str!("../fixtures/opencode-1.18.33.sql");
const OPENCODE_EXPORT: &str = include_str!("../fixtures/opencode-1.18.33.json");

/// A folder with a file, as its program names it.
fn folder_with(name: &str, text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
    folder
}

/// A database as OpenCode leaves it when it was ended: the log of writes still holds something.
fn database(folder: &Path) -> Connection {
    let conn = Connection::open(folder.join("opencode.db")).unwrap();
    conn.pragma_update(None, "journal_mode", "wal").unwrap();
    conn.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
    conn.execute_batch(OPENCODE).unwrap();
    conn
}

/// Names and contents of everything in a folder.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (
                path.display().to_string(),
                fs::read(&path).unwrap_or_default(),
            )
        })
        .collect();
    all.sort();
    all
}

async fn stored(program: Program, path: &Path) -> String {
    let (transcripts, problems) = read(program, path);
    assert_eq!(problems, Vec::<String>::new());
    let folder = tempfile::tempdir().unwrap();
    let store = store(folder.path());
    let sessions = import(&store, transcripts).await;
    let report = store.verify_chain().unwrap();
    assert!(report.faults.is_empty() && report.rows > 5);
    shown(&store, &sessions[0])
}

#[tokio::test]
async fn the_same_task_of_each_program_is_one_conversation() {
    let claude = folder_with("-project/36787166.jsonl", CLAUDE);
    insta::assert_snapshot!("claude", stored(Program::Claude, claude.path()).await);
    let codex = folder_with("2026/11/27/rollout-2026-11-27T00-40-54-01.jsonl", CODEX);
    insta::assert_snapshot!("codex", stored(Program::Codex, codex.path()).await);
    let opencode = tempfile::tempdir().unwrap();
    let _open = database(opencode.path());
    insta::assert_snapshot!("opencode", stored(Program::OpenCode, opencode.path()).await);
}

/// All forms of one conversation, whole. That of the page stands for its script and style.
#[tokio::test]
async fn a_conversation_in_every_form() {
    let folder = folder_with("-project/a.jsonl", CLAUDE);
    let (transcripts, _) = read(Program::Claude, folder.path());
    let place = tempfile::tempdir().unwrap();
    let store = store(place.path());
    let id = import(&store, transcripts).await.remove(0);
    let document = document(&store, &id);
    insta::assert_snapshot!("json", serde_json::to_string_pretty(&document).unwrap());
    insta::assert_snapshot!("markdown", markdown(&document));
    let page = Page {
        script: "run()".into(),
        style: "body {}".into(),
    };
    insta::assert_snapshot!("html", html(&document, &page).unwrap());
    let session = store.session(&id).unwrap().unwrap();
    let stored = select(&store, session, false).unwrap().remove(0);
    insta::assert_snapshot!("opencode_form", opencode(stored).unwrap());
}

/// Before there were whole items in the file, Codex kept only what it sent to the model and was sent.
#[tokio::test]
async fn a_file_of_codex_without_items_says_the_same() {
    let older: String = CODEX
        .lines()
        .filter(|line| !line.contains("item_completed"))
        .map(|line| format!("{line}\n"))
        .collect();
    let folder = folder_with("rollout-1.jsonl", &older);
    let shown = stored(Program::Codex, folder.path()).await;
    for said in [
        "> Change one to two in calc.txt",
        "> Let me look at calc.txt.",
        "<code>bash</code> cat calc.txt",
        "> All **done**: `calc.txt` says two.",
    ] {
        assert_eq!(shown.matches(said).count(), 1, "{said}: {shown}");
    }
    assert!(!shown.contains("environment_context"), "{shown}");
}

#[tokio::test]
async fn an_export_of_opencode_is_the_session_of_its_database() {
    let folder = folder_with("session.json", OPENCODE_EXPORT);
    let of_file = stored(Program::Outrigger, &folder.path().join("session.json")).await;
    let database_folder = tempfile::tempdir().unwrap();
    let _open = database(database_folder.path());
    assert_eq!(
        of_file,
        stored(Program::OpenCode, database_folder.path()).await
    );
}

/// Read while another connection has it open and has written, and when nobody has: no file is made, changed or removed.
#[test]
fn nothing_is_written_beside_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let open = database(folder.path());
    let before = contents(folder.path());
    assert!(
        before
            .iter()
            .any(|(name, bytes)| name.ends_with("-wal") && !bytes.is_empty())
    );
    let (transcripts, _) = read(Program::OpenCode, folder.path());
    assert_eq!(transcripts[0].messages.len(), 5);
    assert_eq!(contents(folder.path()), before);
    drop(open);
    let before = contents(folder.path());
    assert_eq!(before.len(), 1, "the log is in the database");
    let (transcripts, _) = read(Program::OpenCode, folder.path());
    assert_eq!(transcripts[0].messages.len(), 5);
    assert_eq!(contents(folder.path()), before);
}

#[test]
fn older_files_of_opencode_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let file = folder.path().join("storage").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    put(
        "session/p/ses_1.json",
        r#"{"id":"ses_1","title":"Old","directory":"/old","time":{"created":5,"updated":6}}"#,
    );
    put(
        "message/ses_1/msg_1.json",
        r#"{"id":"msg_1","role":"user","sessionID":"ses_1","time":{"created":5}}"#,
    );
    put(
        "message/ses_1/msg_2.json",
        r#"{"id":"msg_2","role":"assistant","sessionID":"ses_1","parentID":"msg_1","time":{"created":6}}"#,
    );
    put("message/ses_1/msg_3.json", "{");
    put(
        "part/msg_1/prt_1.json",
        r#"{"id":"prt_1","type":"text","text":"hi"}"#,
    );
    put(
        "part/msg_2/prt_2.json",
        r#"{"id":"prt_2","type":"text","text":"hello"}"#,
    );
    let (transcripts, problems) = read(Program::OpenCode, folder.path());
    assert_eq!(transcripts[0].messages.len(), 2);
    assert_eq!(
        (transcripts[0].title.as_str(), transcripts[0].created),
        ("Old", 5)
    );
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("msg_3.json"), "{problems:?}");
}

#[tokio::test]
async fn a_second_import_changes_nothing() {
    let folder = folder_with("-project/a.jsonl", CLAUDE);
    let (transcripts, _) = read(Program::Claude, folder.path());
    let place = tempfile::tempdir().unwrap();
    let store = store(place.path());
    let first = write(&store, accepted(transcripts[0].clone()), 1)
        .await
        .unwrap();
    let Outcome::Imported(id) = first else {
        panic!("{first:?}")
    };
    let head = store.head().unwrap();
    let again = write(&store, accepted(transcripts[0].clone()), 2)
        .await
        .unwrap();
    assert_eq!(again, Outcome::There(id));
    assert_eq!(store.head().unwrap(), head);
}

#[test]
fn a_broken_line_is_named_and_nothing_else_is_lost() {
    let broken: String = CLAUDE
        .lines()
        .enumerate()
        .map(|(n, line)| {
            if n == 1 {
                "{\"type\":\n".to_owned()
            } else {
                format!("{line}\n")
            }
        })
        .collect();
    let folder = folder_with("-project/a.jsonl", &broken);
    let (transcripts, problems) = read(Program::Claude, folder.path());
    assert_eq!(problems.len(), 1);
    assert!(
        problems[0].starts_with("FILE/-project/a.jsonl:2: no JSON"),
        "{problems:?}"
    );
    let whole = folder_with("-project/a.jsonl", CLAUDE);
    assert_eq!(transcripts, read(Program::Claude, whole.path()).0);
}

#[test]
fn what_is_there_is_listed_with_title_folder_and_date() {
    let folder = folder_with("-project/a.jsonl", CLAUDE);
    fs::write(folder.path().join("-project/notes.txt"), "x").unwrap();
    fs::write(folder.path().join("-project/empty.jsonl"), "").unwrap();
    let source = Source::open(Program::Claude, folder.path(), &mut Vec::new()).unwrap();
    let [one] = source.found() else {
        panic!("{:?}", source.found())
    };
    assert_eq!(
        (one.title.as_str(), one.directory.as_str()),
        ("Change one to two in calc.txt", "/project")
    );
    assert!(one.updated > 0);
    let missing = Source::open(Program::Codex, Path::new("/nowhere/x"), &mut Vec::new())
        .err()
        .unwrap();
    assert_eq!(missing.code(), "import.nothing");
}
