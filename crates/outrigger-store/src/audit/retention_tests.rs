//! Retention of the audit, and its queries.

use outrigger_protocol::audit::{AuditKind, AuditRecord};
use outrigger_protocol::provenance::{Actor, Deed, Provenance};

use super::tamper_tests::{open, record, runtime, verify};
use super::{AuditFault, AuditQuery, Retention};
use crate::store::Store;

/// What is left after the retention hangs together from the cut on, and the cut cannot be moved.
#[test]
fn removing_old_records_keeps_the_rest_verifiable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    runtime().block_on(async {
        let (store, _) = Store::open(&path).unwrap();
        store
            .keep_audit(Retention {
                records: 20,
                days: 0,
            })
            .unwrap();
        for n in 1..=50 {
            store.audit(1, vec![record(n)]).await.unwrap();
            if n % 10 == 0 {
                store.flush(true).await.unwrap();
            }
        }
        let report = store.verify_audit(None).unwrap();
        assert!(report.is_valid(), "{report:?}");
        let left = store.audit_records(&AuditQuery::default()).unwrap();
        assert!((20..=23).contains(&left.len()), "{}", left.len());
        assert_eq!(left.first().unwrap().seq, report.first);
        let removals: Vec<_> = left
            .iter()
            .filter(|r| r.record.kind == AuditKind::Retention)
            .collect();
        let said = removals.last().unwrap().record.detail.clone();
        let up_to = report.first - 1;
        let said_whole = said.as_deref().is_some_and(|said| {
            said.contains(&format!("up to number {up_to}: ")) && said.contains(" tool_outcome")
        });
        assert!(said_whole, "{said:?}");
        assert_eq!(
            (report.removed, report.last_removal),
            (up_to.unsigned_abs(), said)
        );
    });
    let first = verify(&path).first;
    let conn = open(&path);
    conn.execute("DELETE FROM audit WHERE seq = ?", [first])
        .unwrap();
    drop(conn);
    assert_eq!(verify(&path).faults, [AuditFault::Removed(first, first)]);
    // A cut that says more than the one that was made does not have the key's signature.
    let conn = open(&path);
    conn.execute("UPDATE audit_seals SET seq = seq + 1 WHERE cut = 1", [])
        .unwrap();
    drop(conn);
    assert!(verify(&path).faults.contains(&AuditFault::Seal(first)));
}

/// A body that is not JSON any more must not keep the audit growing.
#[test]
fn a_body_that_cannot_be_read_keeps_nothing_from_being_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    runtime().block_on(async {
        let (store, _) = Store::open(&path).unwrap();
        for n in 1..=30 {
            store.audit(1, vec![record(n)]).await.unwrap();
        }
        store.flush(true).await.unwrap();
        let conn = rusqlite::Connection::open(&path).unwrap();
        conn.execute_batch("DROP TRIGGER audit_update; UPDATE audit SET body = 'x' WHERE seq = 3")
            .unwrap();
        drop(conn);
        let (records, days) = (10, 0);
        store.keep_audit(Retention { records, days }).unwrap();
        store.audit(1, vec![record(31)]).await.unwrap();
        store.flush(true).await.unwrap();
        let report = store.verify_audit(None).unwrap();
        assert!(report.removed >= 20, "{report:?}");
        assert!(report.is_valid(), "{report:?}");
    });
}

#[test]
fn records_that_are_too_old_are_removed() {
    const DAY: u64 = 24 * 60 * 60 * 1000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    runtime().block_on(async {
        let (store, _) = Store::open(&path).unwrap();
        store
            .keep_audit(Retention {
                records: 0,
                days: 7,
            })
            .unwrap();
        for day in 1..=20 {
            store.audit(day * DAY, vec![record(1)]).await.unwrap();
        }
        store.flush(true).await.unwrap();
        let report = store.verify_audit(None).unwrap();
        assert!(report.is_valid(), "{report:?}");
        assert_eq!(report.first, 13);
    });
}

/// C13: searchable by each of its fields.
#[test]
fn records_are_found_by_each_field() {
    let folder = tempfile::tempdir().unwrap();
    let full = AuditRecord {
        kind: AuditKind::Hook,
        at: 100,
        trace_id: "trn_x".into(),
        session_id: Some("ses_x".into()),
        step_id: Some("4".into()),
        hook_name: Some("tool.before_call".into()),
        plugin_id: Some("guard".into()),
        sub_plugin_id: Some("inner".into()),
        plugin_id_claimed: true,
        provenance: Provenance::prompted(Actor::User).with(
            Actor::plugin(&"omo>inner".into()),
            Deed::Changed,
            None,
        ),
        subject: Some("bash call_1".into()),
        input_hash: Some("abcdef".into()),
        output_hash: Some("123456".into()),
        decision: "block".into(),
        duration_ms: 50.0,
        timeout: true,
        errored: true,
        policy_check_result: "refused: rights".into(),
        detail: None,
    };
    runtime().block_on(async {
        let (store, _) = Store::open(&folder.path().join("store.db")).unwrap();
        store
            .audit(1, vec![record(1), full.clone(), record(2)])
            .await
            .unwrap();
        let text = |s: &str| Some(s.to_owned());
        let all = AuditQuery::default;
        for (name, query) in [
            (
                "kind",
                AuditQuery {
                    kinds: vec![AuditKind::Hook],
                    ..all()
                },
            ),
            (
                "trace",
                AuditQuery {
                    trace: text("trn_x"),
                    ..all()
                },
            ),
            (
                "session",
                AuditQuery {
                    session: text("ses_x"),
                    ..all()
                },
            ),
            (
                "step",
                AuditQuery {
                    step: text("4"),
                    ..all()
                },
            ),
            (
                "hook",
                AuditQuery {
                    hook: text("tool.before_call"),
                    ..all()
                },
            ),
            (
                "plugin",
                AuditQuery {
                    plugin: text("guard"),
                    ..all()
                },
            ),
            (
                "sub",
                AuditQuery {
                    sub_plugin: text("inner"),
                    ..all()
                },
            ),
            (
                "cause",
                AuditQuery {
                    cause: vec!["omo".into(), "inner".into(), "changed".into()],
                    ..all()
                },
            ),
            (
                "input",
                AuditQuery {
                    input_hash: text("abc"),
                    ..all()
                },
            ),
            (
                "output",
                AuditQuery {
                    output_hash: text("123456"),
                    ..all()
                },
            ),
            (
                "decision",
                AuditQuery {
                    decision: text("block"),
                    ..all()
                },
            ),
            (
                "ms",
                AuditQuery {
                    least_ms: Some(10.0),
                    ..all()
                },
            ),
            (
                "timeout",
                AuditQuery {
                    timeout: Some(true),
                    ..all()
                },
            ),
            (
                "errored",
                AuditQuery {
                    errored: Some(true),
                    ..all()
                },
            ),
            (
                "policy",
                AuditQuery {
                    policy: text("refused"),
                    ..all()
                },
            ),
            (
                "subject",
                AuditQuery {
                    subject: text("bash"),
                    ..all()
                },
            ),
            (
                "since",
                AuditQuery {
                    since: Some(100),
                    ..all()
                },
            ),
            (
                "seq",
                AuditQuery {
                    seq: Some(2),
                    ..all()
                },
            ),
            (
                "range",
                AuditQuery {
                    after: 1,
                    limit: Some(1),
                    ..all()
                },
            ),
        ] {
            let found = store.audit_records(&query).unwrap();
            assert_eq!(found.len(), 1, "{name}");
            assert_eq!(found[0].record, full, "{name}");
        }
        let last = store
            .audit_records(&AuditQuery {
                limit: Some(2),
                newest: true,
                ..all()
            })
            .unwrap();
        assert_eq!(last.iter().map(|r| r.seq).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(last[1].prev_hash, last[0].hash);
        let none = store
            .audit_records(&AuditQuery {
                until: Some(1),
                ..all()
            })
            .unwrap();
        assert_eq!(none, []);
        let fine = AuditQuery {
            errored: Some(false),
            ..all()
        };
        assert_eq!(store.audit_records(&fine).unwrap().len(), 2);
    });
}
