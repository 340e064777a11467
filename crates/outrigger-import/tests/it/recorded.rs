//! Files that the real programs stored.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use outrigger_export::{Page, html, markdown, opencode, select};
use outrigger_import::{Outcome, Program, Source, accept, outlook, write};
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::id::IdMaker;
use outrigger_protocol::log::LogRecord;
use rusqlite::Connection;

use crate::support::{accepted, document, here, import, read, shown, store};

const CLAUDE: &str = include_str!("../fixtures/claude-2.1.197.jsonl");
const DELEGATES: &str = include_str!("../fixtures/claude-2.1.332-delegates.jsonl");
const AGENT: &str = include_str!("../fixtures/claude-2.1.332-agent.jsonl");
/// Two subagents at once, with 1.0.60.
const INLINE: &str = include_str!("../fixtures/claude-1.0.60-delegates.jsonl");
const CODEX: &str = include_str!("../fixtures/codex-0.171.0.jsonl");
const OPENCODE: &str = include_str!("../fixtures/opencode-1.18.33.sql");
const OPENCODE_EXPORT: &str = include_str!("../fixtures/opencode-1.18.33.json");

/// Creates a folder with a file named as its program does.
fn folder_with(name: &str, text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
    folder
}

/// Creates a database as OpenCode leaves it on exit: its write-ahead log still has content.
fn database(folder: &Path) -> Connection {
    let conn = Connection::open(folder.join("opencode.db")).unwrap();
    conn.pragma_update(None, "journal_mode", "wal").unwrap();
    conn.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
    conn.execute_batch(OPENCODE).unwrap();
    conn
}

/// Returns names and contents of everything in a folder.
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

/// All forms of one conversation, complete. The page is checked without its script and style.
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

/// Before its file had complete items, Codex stored only what it sent to the model and received.
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

/// Read while another connection has it open and has written, and while none has: no file is created, changed or
/// removed.
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

/// A session that continued at its origin: its new messages are added, and those written here since stay.
#[tokio::test]
async fn a_second_import_adds_what_is_new() {
    let lines: Vec<&str> = CLAUDE.lines().collect();
    let place = tempfile::tempdir().unwrap();
    let store = store(place.path());
    let whole = {
        let folder = folder_with("-project/a.jsonl", CLAUDE);
        read(Program::Claude, folder.path()).0.remove(0)
    };
    let mut seen = Vec::new();
    for count in 1..=lines.len() {
        let text: String = lines
            .iter()
            .take(count)
            .map(|it| format!("{it}\n"))
            .collect();
        let folder = folder_with("-project/a.jsonl", &text);
        let source = Source::open(Program::Claude, folder.path(), &mut Vec::new()).unwrap();
        let Some(found) = source.found().first() else {
            continue;
        };
        let transcript = source.read(found, &mut Vec::new()).unwrap();
        let looked = outlook(&store, &accepted(transcript.clone())).unwrap();
        let done = write(&store, accepted(transcript), 1).await.unwrap();
        assert_eq!(done, looked);
        seen.push(done);
    }
    assert!(matches!(seen[0], Outcome::Imported(_)), "{seen:?}");
    let grown = |it: &&Outcome| matches!(it, Outcome::Grown { .. });
    assert!(seen.iter().filter(grown).count() > 5, "{seen:?}");
    let id = accepted(whole.clone()).session.id;
    let at_once = tempfile::tempdir().unwrap();
    let other = crate::support::store(at_once.path());
    import(&other, vec![whole.clone()]).await;
    assert_eq!(shown(&store, &id), shown(&other, &id));

    // A message that differs there now is not a later one.
    let mut rewritten = whole.clone();
    rewritten.messages.remove(0);
    rewritten.messages.extend(whole.messages.clone());
    let head = store.head().unwrap();
    let done = write(&store, accepted(rewritten), 2).await.unwrap();
    assert_eq!(done, Outcome::Differs(id));
    assert_eq!(store.head().unwrap(), head);
}

/// Messages removed here since the import do not come back.
#[tokio::test]
async fn what_was_taken_away_here_is_not_new() {
    let folder = folder_with("-project/a.jsonl", CLAUDE);
    let whole = read(Program::Claude, folder.path()).0.remove(0);
    let place = tempfile::tempdir().unwrap();
    let store = store(place.path());
    let id = import(&store, vec![whole.clone()]).await.remove(0);
    let last = store
        .messages(&id)
        .unwrap()
        .pop()
        .unwrap()
        .info
        .id()
        .clone();
    let removed = Event::MessageRemoved {
        session_id: id.clone(),
        message_id: last,
    };
    let removed = LogRecord::Event(Box::new(BusEvent {
        id: IdMaker::new(1).event(5),
        event: removed,
    }));
    store.append(5, vec![removed]).await.unwrap();
    let done = write(&store, accepted(whole), 6).await.unwrap();
    assert_eq!(done, Outcome::There(id));
}

/// Claude Code 2.1.332 has a file for each subagent: a separate conversation, named by the call that started it.
#[tokio::test]
async fn subagents_of_claude_code_are_sessions_of_their_own() {
    let folder = folder_with("-project/a.jsonl", DELEGATES);
    let file = folder
        .path()
        .join("-project/a/subagents/agent-aa9a0894d0fca19ad.jsonl");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, AGENT).unwrap();
    let source = Source::open(Program::Claude, folder.path(), &mut Vec::new()).unwrap();
    let mut found: Vec<_> = source.found().iter().collect();
    found.sort_by_key(|one| one.parent.is_some());
    assert_eq!(found.len(), 2);
    assert_eq!(found[1].parent.as_ref(), Some(&found[0].id));
    let read = |one| source.read(one, &mut Vec::new()).unwrap();
    let [above, below] = [read(found[0]), read(found[1])];
    let child = accepted(below.clone()).session.id;
    let known = BTreeMap::from([(below.id.clone(), child.clone())]);
    let place = tempfile::tempdir().unwrap();
    let store = store(place.path());
    let above = accept(above, &here(), &known);
    let parent = above.session.id.clone();
    write(&store, above, 1).await.unwrap();
    let known = BTreeMap::from([(found[0].id.clone(), parent.clone())]);
    write(&store, accept(below, &here(), &known), 1)
        .await
        .unwrap();
    let of = |id| store.session(id).unwrap().unwrap();
    assert_eq!(of(&child).parent_id.as_ref(), Some(&parent));
    let document = serde_json::to_string(&document(&store, &parent)).unwrap();
    assert!(
        document.contains(&format!(r#""conversation":"{child}""#)),
        "{document}"
    );
    insta::assert_snapshot!("claude_subagent", shown(&store, &child));
}

/// Version 1.0 wrote subagents into the file of their session, several at a time.
#[tokio::test]
async fn subagents_in_the_file_of_their_session_are_sessions_of_their_own() {
    let folder = folder_with("-project/a.jsonl", INLINE);
    let source = Source::open(Program::Claude, folder.path(), &mut Vec::new()).unwrap();
    let [above, b, a] = source.found() else {
        panic!("{:?}", source.found());
    };
    assert_eq!(above.title, "Delegate it");
    assert_eq!(a.title, "SUBTASK A: look at calc.txt");
    for one in [a, b] {
        assert_eq!(one.parent.as_ref(), Some(&above.id));
    }
    let place = tempfile::tempdir().unwrap();
    let store = store(place.path());
    let read = |one| source.read(one, &mut Vec::new()).unwrap();
    let id = |one| accepted(read(one)).session.id;
    let all = [above, a, b].map(|one| (one.id.clone(), id(one)));
    let known = BTreeMap::from(all);
    for one in [above, a, b] {
        let accepted = accept(read(one), &here(), &known);
        write(&store, accepted, 1).await.unwrap();
    }
    let parent = known[&above.id].clone();
    let own = |id| {
        let mut document = document(&store, id);
        let entries = document.conversations.remove(0).entries;
        entries
            .iter()
            .map(|it| serde_json::to_string(it).unwrap())
            .collect::<Vec<String>>()
    };
    let session = own(&parent);
    assert!(
        !session.concat().contains("I look at the file"),
        "{session:?}"
    );
    for (one, other, says) in [(a, b, "(a)"), (b, a, "(b)")] {
        let child = &known[&one.id];
        let stored = store.session(child).unwrap().unwrap();
        assert_eq!(stored.parent_id.as_ref(), Some(&parent));
        let below = own(child).concat();
        for said in ["I look at the file", "It says one"] {
            assert!(below.contains(&format!("{said} {says}.")), "{below}");
        }
        // Its call leads to it, and to no other.
        let call = session.iter().find(|it| it.contains(says)).unwrap();
        assert!(
            call.contains(&format!(r#""conversation":"{child}""#)),
            "{call}"
        );
        assert!(!call.contains(known[&other.id].as_str()), "{call}");
    }
}

#[test]
fn a_session_of_another_program_is_named() {
    let cases = [
        (
            Program::Claude,
            "rollout-1.jsonl",
            CODEX,
            "outrigger import codex",
        ),
        (
            Program::Codex,
            "rollout-a.jsonl",
            CLAUDE,
            "outrigger import claude",
        ),
    ];
    for (program, name, text, hint) in cases {
        let folder = folder_with(name, text);
        let file = folder.path().join(name);
        let error = Source::open(program, &file, &mut Vec::new()).err().unwrap();
        assert_eq!(error.code(), "import.other_program");
        let hint = format!("`{hint} {}`", file.display());
        assert_eq!(error.hint(), Some(hint));
    }
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
