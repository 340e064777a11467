//! Writing and reading back; several writers on one file.

use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::hook::{HookRecord, OutcomeKind};
use outrigger_protocol::id::{CallId, TurnId};
use outrigger_protocol::log::{LogRecord, ToolRecord};
use outrigger_protocol::tool::ToolCall;
use outrigger_store::{
    ChainFault, OpenReport, RecordQuery, Scope, SessionFilter, Store, StoreError,
};

use crate::support::*;

fn hook(session: &str, turn: &str, point: &str) -> LogRecord {
    LogRecord::Hook(Box::new(HookRecord {
        session: Some(session.into()),
        turn: Some(turn.into()),
        payload_bytes: 1,
        duration_ms: 0.5,
        at: 1,
        ..HookRecord::new(point, point, "p".into(), OutcomeKind::Ok)
    }))
}

fn tool(session: &str, name: &str) -> LogRecord {
    LogRecord::Tool(Box::new(ToolRecord {
        fingerprint: None,
        call: ToolCall {
            call_id: CallId("c".into()),
            session_id: session.into(),
            message_id: "msg_1".into(),
            agent: "build".into(),
            tool: name.into(),
            input: serde_json::json!({}),
            provenance: outrigger_protocol::provenance::Provenance::default(),
        },
        provenance: outrigger_protocol::provenance::Provenance::default(),
        turn: None,
        permissions: Vec::new(),
        outcome: "completed".into(),
        retries: 0,
        joined: false,
        duration_ms: 1.0,
        at: 1,
        audit: Default::default(),
    }))
}

#[tokio::test]
async fn what_is_appended_is_read_back_and_survives_closing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/store.db");
    let records = vec![
        created(session("ses_b", None, 5)),
        message("ses_b", "msg_2", 0.1),
        part("ses_b", "msg_2", "prt_2", "two"),
        part("ses_b", "msg_2", "prt_1", "one"),
        message("ses_b", "msg_1", 0.0),
        part("ses_b", "msg_1", "prt_3", "first"),
        todos("ses_b", &["a", "b"]),
        step("ses_b", "trn_1", 0, false),
        step("ses_b", "trn_1", 1, true),
        step("ses_b", "trn_2", 0, false),
        hook("ses_b", "trn_1", "run.before_start"),
        tool("ses_b", "read"),
        created(session("ses_a", Some("ses_b"), 9)),
    ];
    {
        let (store, report) = Store::open(&path).unwrap();
        assert_eq!(
            report,
            OpenReport {
                created: true,
                alone: true,
                ..OpenReport::default()
            }
        );
        let seqs = store.append(42, records.clone()).await.unwrap();
        assert_eq!(seqs, (1..=13).collect::<Vec<_>>());
        assert_eq!(
            store.append(43, Vec::new()).await.unwrap(),
            Vec::<i64>::new()
        );
    }
    let (store, report) = Store::open(&path).unwrap();
    assert!(
        !report.created && !report.unclean && !report.checked,
        "{report:?}"
    );
    let stored = store.records(&RecordQuery::default()).unwrap();
    assert!(stored.iter().all(|r| r.at == 42));
    assert_eq!(
        stored.into_iter().map(|r| r.record).collect::<Vec<_>>(),
        records
    );

    let ses = "ses_b".into();
    let shape: Vec<_> = store
        .messages(&ses)
        .unwrap()
        .into_iter()
        .map(|m| {
            let parts: Vec<_> = m.parts.iter().map(|p| p.id.to_string()).collect();
            format!("{} {}", m.info.id(), parts.join(","))
        })
        .collect();
    assert_eq!(shape, ["msg_1 prt_3", "msg_2 prt_1,prt_2"]);
    assert_eq!(
        store
            .message(&ses, &"msg_2".into())
            .unwrap()
            .unwrap()
            .parts
            .len(),
        2
    );
    assert!(store.message(&ses, &"msg_9".into()).unwrap().is_none());
    assert_eq!(
        store.session(&ses).unwrap().unwrap(),
        session("ses_b", None, 5)
    );
    assert_eq!(store.children(&ses).unwrap()[0].id, "ses_a".into());
    assert_eq!(store.todos(&ses).unwrap().len(), 2);
    assert_eq!(store.todos(&"ses_a".into()).unwrap(), []);

    let ids = |filter: &SessionFilter| -> Vec<String> {
        store
            .sessions(filter)
            .unwrap()
            .into_iter()
            .map(|s| s.id.0)
            .collect()
    };
    let all = SessionFilter::default();
    assert_eq!(ids(&all), ["ses_a", "ses_b"]);
    let root = SessionFilter {
        roots_only: true,
        directory: Some("/work".into()),
        limit: Some(1),
        ..all.clone()
    };
    assert_eq!(ids(&root), ["ses_b"]);
    assert_eq!(
        ids(&SessionFilter {
            project: Some("other".into()),
            ..all
        }),
        Vec::<String>::new()
    );

    assert_eq!(store.turn_steps(&"trn_1".into()).unwrap().len(), 2);
    assert_eq!(
        store.open_turns().unwrap(),
        [(TurnId("trn_2".into()), ses.clone())]
    );
    let turns = store.last_turns(&ses, 10).unwrap();
    assert_eq!(
        turns
            .iter()
            .map(|t| (t.turn.as_str(), t.last_step, t.open))
            .collect::<Vec<_>>(),
        [("trn_2", 0, true), ("trn_1", 1, false)]
    );
    assert_eq!(store.turn(&"trn_1".into()).unwrap().as_ref(), turns.last());
    for scope in [Scope::Session(&ses), Scope::Turn(&"trn_1".into())] {
        assert_eq!(store.hooks(scope).unwrap().len(), 1, "{scope:?}");
    }
    assert_eq!(
        store.tools(Scope::Session(&ses)).unwrap()[0].call.tool,
        "read"
    );
    let page = store
        .records(&RecordQuery {
            scope: Some(Scope::Session(&ses)),
            after: 3,
            limit: Some(2),
            ..RecordQuery::default()
        })
        .unwrap();
    assert_eq!(page.iter().map(|r| r.seq).collect::<Vec<_>>(), [4, 5]);
    assert_sound(&store).await;
}

#[tokio::test]
async fn files_are_for_the_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data/store.db");
    let (store, _) = Store::open(&path).unwrap();
    store
        .append(1, vec![created(session("ses_1", None, 1))])
        .await
        .unwrap();
    for (name, mode) in [
        ("data", 0o700),
        ("data/store.db", 0o600),
        ("data/store.db-wal", 0o600),
        ("data/store.db-lock", 0o600),
    ] {
        let found = std::fs::metadata(folder.path().join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777;
        assert_eq!(found, mode, "{name}");
    }
}

#[tokio::test]
async fn lazy_records_keep_their_order_and_are_there_after_a_flush_or_a_close() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    {
        let (store, _) = Store::open(&path).unwrap();
        store.append_lazily(1, vec![hook("ses_1", "trn_1", "a")]);
        assert_eq!(
            store
                .append(1, vec![hook("ses_1", "trn_1", "b")])
                .await
                .unwrap(),
            [2]
        );
        store.append_lazily(1, vec![hook("ses_1", "trn_1", "c")]);
        store.flush(true).await.unwrap();
        assert_eq!(store.head().unwrap().seq, 3);
        store.append_lazily(1, vec![hook("ses_1", "trn_1", "d")]);
    }
    let (store, report) = Store::open(&path).unwrap();
    assert!(!report.unclean);
    let points: Vec<_> = store
        .hooks(Scope::Turn(&"trn_1".into()))
        .unwrap()
        .into_iter()
        .map(|h| h.point)
        .collect();
    assert_eq!(points, ["a", "b", "c", "d"]);
}

#[tokio::test]
async fn a_record_that_cannot_be_written_spoils_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(&folder.path().join("store.db")).unwrap();
    let error = store
        .append(u64::MAX, vec![step("ses_1", "trn_1", 0, false)])
        .await
        .unwrap_err();
    assert_eq!(error.code(), "store.encode");
    assert_eq!(
        store
            .append(1, vec![step("ses_1", "trn_1", 0, false)])
            .await
            .unwrap(),
        [1]
    );
}

#[tokio::test]
async fn meta_values_are_changed_without_losing_a_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let (a, _) = Store::open(&path).unwrap();
    let (b, report) = Store::open(&path).unwrap();
    assert!(!report.alone);
    a.meta_set("k", Some("")).await.unwrap();
    let add = |store: Store, what: char| async move {
        for _ in 0..50 {
            let update = move |old: Option<String>| {
                old.map(|mut text| {
                    text.push(what);
                    text
                })
            };
            store.meta_update("k", update).await.unwrap();
        }
    };
    tokio::join!(add(a.clone(), 'a'), add(b.clone(), 'b'));
    let value = b.meta_get("k").unwrap().unwrap();
    assert_eq!(
        (value.matches('a').count(), value.matches('b').count()),
        (50, 50)
    );
    a.meta_set("k", None).await.unwrap();
    assert_eq!(b.meta_get("k").unwrap(), None);
}

const WRITES: usize = 60;

async fn write_many(store: &Store, name: &str) {
    for i in 0..WRITES {
        let records = vec![
            message("ses_1", &format!("msg_{name}_{i}"), 0.0),
            part("ses_1", &format!("msg_{name}_{i}"), "prt_1", name),
        ];
        let seqs = store.append(1, records).await.unwrap();
        assert_eq!(seqs[1], seqs[0] + 1, "one append is never split");
    }
}

#[tokio::test]
async fn two_stores_in_one_process_keep_one_chain() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let (a, _) = Store::open(&path).unwrap();
    let (b, _) = Store::open(&path).unwrap();
    tokio::join!(
        write_many(&a, "a1"),
        write_many(&a, "a2"),
        write_many(&b, "b")
    );
    drop(a);
    assert_eq!(b.verify_chain().unwrap().rows as usize, 3 * 2 * WRITES);
    assert_eq!(b.messages(&"ses_1".into()).unwrap().len(), 3 * WRITES);
    assert_sound(&b).await;
}

#[tokio::test]
#[ignore = "started by several_processes_keep_one_chain"]
async fn child_writes_many() {
    let Some(path) = given_path() else { return };
    let (store, _) = Store::open(&path).unwrap();
    write_many(&store, &format!("p{}", std::process::id())).await;
}

// All three find no file and make it at the same time.
#[tokio::test]
async fn several_processes_keep_one_chain() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let children: Vec<_> = (0..3)
        .map(|_| child("append::child_writes_many", &path, &[]))
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let (store, report) = Store::open(&path).unwrap();
    assert!(!report.unclean && !report.created);
    assert_eq!(store.messages(&"ses_1".into()).unwrap().len(), 3 * WRITES);
    assert_sound(&store).await;
}

#[tokio::test]
async fn a_changed_row_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let (store, _) = Store::open(&path).unwrap();
    for i in 0..10 {
        store
            .append(1, vec![message("ses_1", &format!("msg_{i}"), 0.0)])
            .await
            .unwrap();
    }
    let head = store.head().unwrap();
    assert_eq!(store.hash_at(head.seq).unwrap(), Some(head.hash));
    let forge = rusqlite::Connection::open(&path).unwrap();
    forge
        .execute_batch("DROP TRIGGER log_update; DROP TRIGGER log_delete")
        .unwrap();
    for (sql, want) in [
        (
            "UPDATE log SET body = replace(body, 'msg_3', 'msg_x') WHERE seq = 4",
            vec![(4, ChainFault::Changed)],
        ),
        (
            "UPDATE log SET body = replace(body, 'msg_x', 'msg_3') WHERE seq = 4",
            vec![],
        ),
        (
            "UPDATE log SET turn = '' WHERE seq = 2",
            vec![(2, ChainFault::Changed)],
        ),
        ("UPDATE log SET turn = NULL WHERE seq = 2", vec![]),
        (
            "DELETE FROM log WHERE seq = 7",
            vec![(8, ChainFault::Unlinked)],
        ),
    ] {
        forge.execute(sql, []).unwrap();
        assert_eq!(store.verify_chain().unwrap().faults, want, "{sql}");
    }
}

#[tokio::test]
async fn the_stores_name_is_in_its_errors() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    for path in [folder.path().to_path_buf(), file.join("store.db")] {
        let error = Store::open(&path).unwrap_err();
        assert!(matches!(error, StoreError::Open { .. }), "{error:?}");
        assert!(
            error.to_string().contains(path.to_str().unwrap()),
            "{error}"
        );
        assert!(error.hint().is_some());
    }
}
