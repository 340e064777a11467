//! What the audit's seals cover, who has their key, and what is kept out of a record.

use outrigger_protocol::log::{ClientRecord, LogRecord};

use super::tamper_tests::{case, open, record, runtime, verify};
use super::{AuditFault, AuditQuery};
use crate::store::Store;

#[test]
fn a_session_log_that_was_cut_or_rewritten_is_found_by_the_audits_seals() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    runtime().block_on(async {
        let (store, _) = Store::open(&path).unwrap();
        let request = ClientRecord {
            plugin: None,
            method: "POST".into(),
            path: "/session".into(),
            session: None,
            status: 200,
            duration_ms: 1.0,
            at: 1,
        };
        for at in 1..=3 {
            store
                .append(at, vec![LogRecord::Client(Box::new(request.clone()))])
                .await
                .unwrap();
        }
        store.flush(true).await.unwrap();
        assert!(store.verify_audit(None).unwrap().is_valid());
        assert_eq!(
            store.audit_records(&AuditQuery::default()).unwrap().len(),
            3
        );
    });
    let conn = open(&path);
    conn.execute_batch("DROP TRIGGER log_delete; DELETE FROM log WHERE seq = 3")
        .unwrap();
    drop(conn);
    assert!(
        Store::open(&path)
            .unwrap()
            .0
            .verify_chain()
            .unwrap()
            .is_valid(),
        "the chain alone cannot see it"
    );
    assert_eq!(verify(&path).faults, [AuditFault::Log(3)]);
}

#[test]
fn the_key_is_for_this_user_alone_and_made_once() {
    use std::os::unix::fs::PermissionsExt as _;
    let case = case(2, 2);
    let key = super::seal::key_path(&case.path);
    let mode = std::fs::metadata(&key).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let before = std::fs::read(&key).unwrap();
    runtime().block_on(async {
        let (store, _) = Store::open(&case.path).unwrap();
        store.audit(3, vec![record(3)]).await.unwrap();
        store.flush(true).await.unwrap();
        assert_eq!(
            store.verify_audit(None).unwrap().seals,
            3,
            "two, and the file beside the store"
        );
    });
    assert_eq!(std::fs::read(&key).unwrap(), before);
    let rest: Vec<_> = std::fs::read_dir(case.path.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("audit"))
        .collect();
    assert_eq!(rest.len(), 2, "{rest:?}");
}

/// A long turn does not wait for its end.
#[test]
fn a_seal_comes_after_a_thousand_records() {
    let folder = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = Store::open(&folder.path().join("store.db")).unwrap();
        let unsealed = async |records: std::ops::RangeInclusive<i64>| {
            store.audit(1, records.map(record).collect()).await.unwrap();
            // Nothing goes to disk by this.
            store.flush(false).await.unwrap();
            store.verify_audit(None).unwrap().unsealed
        };
        assert_eq!(unsealed(1..=999).await, 999);
        assert_eq!(unsealed(1000..=1000).await, 0);
    });
}

#[test]
fn nothing_is_written_over_and_secrets_do_not_get_in() {
    let case = case(2, 2);
    runtime().block_on(async {
        let (store, _) = Store::open(&case.path).unwrap();
        store.redactor().hide(["hunter2hunter2".to_owned()]);
        let mut secret = record(3);
        secret.subject = Some("bash: echo hunter2hunter2 --password abcdef".into());
        secret.detail = Some("Bearer xyz".into());
        store.audit(3, vec![secret]).await.unwrap();
        let last = store
            .audit_records(&AuditQuery {
                seq: Some(3),
                ..AuditQuery::default()
            })
            .unwrap()
            .remove(0);
        assert_eq!(
            last.record.subject.as_deref(),
            Some("bash: echo [removed] --password [removed]")
        );
        assert_eq!(last.record.detail.as_deref(), Some("Bearer [removed]"));
        for sql in ["UPDATE audit SET at = 2", "DELETE FROM audit"] {
            let error = store
                .work("try", move |conn| conn.execute(sql, []))
                .await
                .unwrap_err();
            assert!(error.to_string().contains("append-only"), "{error}");
        }
    });
}
