//! Changes to a real file behind the store's back: each is found, and the right record is named.

use std::path::{Path, PathBuf};

use outrigger_protocol::audit::{AuditKind, AuditRecord};
use outrigger_protocol::diagnose::Diagnose;
use proptest::prelude::*;
use rusqlite::{Connection, params};

use super::chain::Entry;
use super::{AuditFault, AuditReport};
use crate::store::Store;

pub(super) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
}

pub(super) fn record(n: i64) -> AuditRecord {
    AuditRecord {
        trace_id: format!("trn_{}", n / 10),
        session_id: Some("ses_1".into()),
        subject: Some(format!("call {n}")),
        ..AuditRecord::new(AuditKind::ToolOutcome, n.unsigned_abs(), "completed")
    }
}

/// A closed store of `rows` audit records, sealed behind `sealed` of them and not behind the others.
pub(super) struct Case {
    _folder: tempfile::TempDir,
    pub(super) path: PathBuf,
}

pub(super) fn case(rows: i64, sealed: i64) -> Case {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let beside = super::seal::seal_path(&path);
    let mut last = Vec::new();
    runtime().block_on(async {
        let (store, _) = Store::open(&path).unwrap();
        for n in 1..=rows {
            store
                .audit(n.unsigned_abs(), vec![record(n)])
                .await
                .unwrap();
            if n == sealed {
                store.flush(true).await.unwrap();
                last = std::fs::read(&beside).unwrap();
            }
        }
    });
    // Closing seals what is left; a process that is killed does not.
    if sealed < rows {
        let conn = open(&path);
        conn.execute("DELETE FROM audit_seals WHERE seq > ?", [sealed])
            .unwrap();
        std::fs::write(beside, last).unwrap();
        drop(conn);
    }
    Case {
        _folder: folder,
        path,
    }
}

pub(super) fn open(path: &Path) -> Connection {
    let conn = Connection::open(path).unwrap();
    conn.execute_batch("DROP TRIGGER IF EXISTS audit_update; DROP TRIGGER IF EXISTS audit_delete;")
        .unwrap();
    conn
}

pub(super) fn verify(path: &Path) -> AuditReport {
    let (store, _) = Store::open(path).unwrap();
    store.verify_audit(None).unwrap()
}

/// Makes the hash of a row anew from its fields.
fn rehash(conn: &Connection, seq: i64) {
    let (entry, prev): (Entry, Vec<u8>) = conn
        .query_row(
            "SELECT at, kind, body, prev_hash FROM audit WHERE seq = ?",
            [seq],
            |row| {
                let entry = Entry {
                    at: row.get(0)?,
                    kind: row.get(1)?,
                    body: row.get(2)?,
                };
                Ok((entry, row.get(3)?))
            },
        )
        .unwrap();
    conn.execute(
        "UPDATE audit SET hash = ? WHERE seq = ?",
        params![entry.hash(seq, &prev), seq],
    )
    .unwrap();
}

/// Moves the numbers from `from` on by `by`.
fn shift(conn: &Connection, from: i64, by: i64) {
    // Over numbers that are free, so that no two rows have one on the way.
    conn.execute("UPDATE audit SET seq = -seq WHERE seq >= ?", [from])
        .unwrap();
    conn.execute("UPDATE audit SET seq = -seq + ? WHERE seq < 0", [by])
        .unwrap();
}

#[derive(Clone, Copy, Debug)]
enum Edit {
    Time(i64),
    Kind(i64),
    Body(i64),
    /// The body, with the row's hash made anew.
    Whole(i64),
    /// The body, with all hashes to the end made anew.
    Rest(i64),
    Remove(i64),
    /// And the numbers behind it closed up.
    RemoveAndClose(i64),
    Swap(i64, i64),
    /// A well-formed row after this one, the others moved up.
    Insert(i64),
    /// A copy of this row behind the end.
    Append(i64),
    Cut(i64),
    /// With the seals of what is cut.
    CutSealed(i64),
    All,
}

fn apply(conn: &Connection, edit: Edit, rows: i64) {
    let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
        conn.execute(sql, values).unwrap();
    };
    match edit {
        Edit::Time(n) => run("UPDATE audit SET at = at + 1 WHERE seq = ?", &[&n]),
        Edit::Kind(n) => run("UPDATE audit SET kind = 'hook' WHERE seq = ?", &[&n]),
        Edit::Body(n) => run(
            "UPDATE audit SET body = replace(body, 'completed', 'denied') WHERE seq = ?",
            &[&n],
        ),
        Edit::Whole(n) => {
            apply(conn, Edit::Body(n), rows);
            rehash(conn, n);
        }
        Edit::Rest(n) => {
            apply(conn, Edit::Whole(n), rows);
            for seq in n + 1..=rows {
                run(
                    "UPDATE audit SET prev_hash = (SELECT hash FROM audit WHERE seq = ?1 - 1) WHERE seq = ?1",
                    &[&seq],
                );
                rehash(conn, seq);
            }
        }
        Edit::Remove(n) => run("DELETE FROM audit WHERE seq = ?", &[&n]),
        Edit::RemoveAndClose(n) => {
            apply(conn, Edit::Remove(n), rows);
            shift(conn, n + 1, -1);
        }
        Edit::Swap(a, b) => {
            run("UPDATE audit SET seq = -1 WHERE seq = ?", &[&a]);
            run("UPDATE audit SET seq = ? WHERE seq = ?", &[&a, &b]);
            run("UPDATE audit SET seq = ? WHERE seq = -1", &[&b]);
        }
        Edit::Insert(n) => {
            shift(conn, n + 1, 1);
            run(
                "INSERT INTO audit SELECT seq + 1, at, kind, replace(body, 'call', 'other'), hash, x'00' FROM audit WHERE seq = ?",
                &[&n],
            );
            rehash(conn, n + 1);
        }
        Edit::Append(n) => {
            run(
                "INSERT INTO audit SELECT ?2 + 1, at, kind, body, prev_hash, hash FROM audit WHERE seq = ?1",
                &[&n, &rows],
            );
        }
        Edit::Cut(n) => run("DELETE FROM audit WHERE seq > ?", &[&n]),
        Edit::CutSealed(n) => {
            apply(conn, Edit::Cut(n), rows);
            run("DELETE FROM audit_seals WHERE seq > ?", &[&n]);
        }
        Edit::All => run("DELETE FROM audit", &[]),
    }
}

fn faults(edit: Edit) -> Vec<AuditFault> {
    const ROWS: i64 = 12;
    let case = case(ROWS, ROWS);
    assert!(verify(&case.path).is_valid());
    let conn = open(&case.path);
    apply(&conn, edit, ROWS);
    drop(conn);
    verify(&case.path).faults
}

/// "Audit edits" of the table of ways around, one by one.
#[test]
fn every_edit_is_found_and_named() {
    use AuditFault::*;
    for (edit, want) in [
        (Edit::Time(3), vec![Changed(3)]),
        (Edit::Kind(1), vec![Changed(1)]),
        (Edit::Body(12), vec![Changed(12)]),
        (Edit::Whole(5), vec![Replaced(5)]),
        (Edit::Whole(12), vec![Rewritten(12)]),
        (Edit::Rest(4), vec![Rewritten(12)]),
        (Edit::Remove(1), vec![Removed(1, 1)]),
        (Edit::Remove(7), vec![Removed(7, 7)]),
        (
            Edit::RemoveAndClose(10),
            vec![
                Removed(10, 10),
                Moved { seq: 10, was: 11 },
                Moved { seq: 11, was: 12 },
            ],
        ),
        (
            Edit::Swap(2, 9),
            vec![Moved { seq: 2, was: 9 }, Moved { seq: 9, was: 2 }],
        ),
        (
            Edit::Insert(10),
            vec![
                Moved { seq: 12, was: 11 },
                Moved { seq: 13, was: 12 },
                Inserted(11),
            ],
        ),
        (
            Edit::Append(3),
            vec![Moved { seq: 13, was: 3 }, Inserted(13)],
        ),
        (Edit::Cut(9), vec![CutOff(10, 12)]),
        (Edit::CutSealed(9), vec![CutOff(10, 12)]),
        (Edit::All, vec![CutOff(1, 12)]),
    ] {
        assert_eq!(faults(edit), want, "{edit:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Whatever is done to whichever record, the report names it or the seal that covers it.
    #[test]
    fn no_edit_goes_unseen(n in 1..=40_i64, other in 1..=40_i64, what in 0..10) {
        const ROWS: i64 = 40;
        let case = case(ROWS, ROWS);
        let other = if other == n { n % ROWS + 1 } else { other };
        let edit = match what {
            0 => Edit::Time(n),
            1 => Edit::Body(n),
            2 => Edit::Whole(n),
            3 => Edit::Rest(n),
            4 => Edit::Remove(n),
            5 => Edit::RemoveAndClose(n),
            6 => Edit::Swap(n, other),
            7 => Edit::Insert(n),
            8 => Edit::Append(n),
            _ => Edit::CutSealed(n - 1),
        };
        let conn = open(&case.path);
        apply(&conn, edit, ROWS);
        drop(conn);
        let report = verify(&case.path);
        let named = |seq: i64| report.faults.iter().any(|fault| match fault {
            AuditFault::Changed(at) | AuditFault::Replaced(at) | AuditFault::Inserted(at) => *at == seq,
            AuditFault::Removed(from, to) | AuditFault::CutOff(from, to) => (*from..=*to).contains(&seq),
            AuditFault::Moved { seq: at, was } => *at == seq || *was == seq,
            AuditFault::Rewritten(at) => *at >= seq,
            AuditFault::Seal(_) | AuditFault::Log(_) => false,
            AuditFault::SealLost | AuditFault::SealWasLost(_) => false,
        });
        let right = match edit {
            // Behind the last seal it is what a store killed before its next seal looks like: nobody vouches for it.
            Edit::Insert(n) if n == ROWS => report.unsealed == 1,
            Edit::Insert(n) => named(n + 1),
            Edit::CutSealed(n) => named(n + 1) && named(ROWS),
            Edit::Swap(a, b) => named(a) && named(b),
            _ => named(n),
        };
        prop_assert!(right, "{edit:?}: {:?}", report.faults);
    }
}

#[test]
fn what_no_seal_covers_is_counted_and_not_vouched_for() {
    let case = case(9, 6);
    let report = verify(&case.path);
    assert!(report.is_valid(), "{report:?}");
    assert_eq!((report.rows, report.seals, report.unsealed), (9, 2, 3));
    // Within it an edit is still seen, a cut is not: that is what the seals are for.
    let conn = open(&case.path);
    apply(&conn, Edit::Cut(6), 9);
    drop(conn);
    assert_eq!(verify(&case.path).faults, []);
    let conn = open(&case.path);
    apply(&conn, Edit::Cut(5), 9);
    drop(conn);
    assert_eq!(verify(&case.path).faults, [AuditFault::CutOff(6, 6)]);
}

#[test]
fn seals_of_another_key_and_changed_seals_are_found() {
    let case = case(4, 4);
    let conn = open(&case.path);
    conn.execute("UPDATE audit_seals SET log_seq = 7", [])
        .unwrap();
    drop(conn);
    assert_eq!(verify(&case.path).faults, [AuditFault::Seal(4)]);
    // An attacker makes a key and seals what they wrote; a kept copy of the right key shows it.
    let kept = Store::open(&case.path)
        .unwrap()
        .0
        .audit_key()
        .unwrap()
        .unwrap();
    std::fs::write(super::seal::key_path(&case.path), "11".repeat(32)).unwrap();
    let (store, _) = Store::open(&case.path).unwrap();
    let faults = store.verify_audit(Some(&kept)).unwrap().faults;
    assert_eq!(faults, [AuditFault::Seal(4)]);
    assert_eq!(
        store.verify_audit(None).unwrap().faults,
        [AuditFault::Seal(4)]
    );
    std::fs::write(super::seal::key_path(&case.path), "no key").unwrap();
    let error = store.verify_audit(None).unwrap_err();
    assert_eq!(error.code(), "store.decode");
}

/// What another run of the program writes.
fn go_on(path: &Path, from: i64, rows: i64) {
    runtime().block_on(async {
        let (store, _) = Store::open(path).unwrap();
        for n in from..from + rows {
            store
                .audit(n.unsigned_abs(), vec![record(n)])
                .await
                .unwrap();
        }
        store.flush(true).await.unwrap();
    });
}

/// The end, or all of it, is removed together with its seals; what vouches for it then is the file beside the store, and that
/// it was there. Who has no key makes none anew, and what the program writes afterwards covers nothing up.
#[test]
fn an_end_that_is_cut_off_stays_cut_off_whatever_is_written_behind() {
    use AuditFault::*;
    const ROWS: i64 = 12;
    /// What becomes of the file beside the store.
    #[derive(Clone, Copy, Debug)]
    enum File {
        Stays,
        Removed,
        Unreadable,
        /// What the store has of an older seal, in the form of the file.
        Older,
    }
    for (cut, file, want, after) in [
        (12, File::Removed, vec![SealLost], vec![SealWasLost(33)]),
        (12, File::Unreadable, vec![SealLost], vec![SealWasLost(33)]),
        (9, File::Removed, vec![SealLost], vec![SealWasLost(30)]),
        (0, File::Removed, vec![SealLost], vec![SealWasLost(21)]),
        (9, File::Older, vec![Seal(6)], vec![SealWasLost(30)]),
        (9, File::Stays, vec![CutOff(10, 12)], vec![Rewritten(12)]),
        (0, File::Stays, vec![CutOff(1, 12)], vec![Rewritten(12)]),
    ] {
        let case = case(6, 6);
        go_on(&case.path, 7, ROWS - 6);
        assert_eq!(verify(&case.path).faults, []);
        let conn = open(&case.path);
        apply(&conn, Edit::CutSealed(cut), ROWS);
        let beside = super::seal::seal_path(&case.path);
        match file {
            File::Stays => {}
            File::Removed => std::fs::remove_file(&beside).unwrap(),
            File::Unreadable => std::fs::write(&beside, "12 0").unwrap(),
            File::Older => {
                let line: String = conn
                    .query_row(
                        "SELECT concat_ws(' ', seq, cut, hex(hash), log_seq, hex(log_hash), at, hex(key), hex(signature))
                            FROM audit_seals WHERE seq = 6",
                        [],
                        |row| row.get(0),
                    )
                    .unwrap();
                std::fs::write(&beside, line).unwrap();
            }
        }
        drop(conn);
        let what = format!("{cut} {file:?}");
        assert_eq!(verify(&case.path).faults, want, "{what}");
        go_on(&case.path, 13, 20);
        assert_eq!(verify(&case.path).faults, after, "{what}, gone on");
        go_on(&case.path, 33, 2);
        assert_eq!(verify(&case.path).faults, after, "{what}, and again");
    }
}

/// With key, seals and records gone, this machine has nothing left to tell; who kept the public key sees it.
#[test]
fn a_store_that_was_emptied_is_none_of_the_key_that_somebody_kept() {
    let case = case(4, 4);
    let (store, _) = Store::open(&case.path).unwrap();
    let kept = store.audit_key().unwrap().unwrap();
    drop(store);
    let conn = open(&case.path);
    apply(&conn, Edit::CutSealed(0), 4);
    drop(conn);
    std::fs::remove_file(super::seal::key_path(&case.path)).unwrap();
    std::fs::remove_file(super::seal::seal_path(&case.path)).unwrap();
    assert_eq!(verify(&case.path).faults, []);
    let (store, _) = Store::open(&case.path).unwrap();
    let faults = store.verify_audit(Some(&kept)).unwrap().faults;
    assert_eq!(faults, [AuditFault::SealLost]);
}
