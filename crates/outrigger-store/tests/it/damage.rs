//! Files that are damaged, foreign, or newer.

use std::fs;
use std::path::{Path, PathBuf};

use outrigger_protocol::diagnose::Diagnose;
use outrigger_store::{OpenOptions, SalvageReport, Store, StoreError, fault, salvage};

use crate::support::*;

const ROWS: i64 = 400;

/// A store with rows of all sizes, some of which run over several pages; closed.
async fn filled(path: &Path) {
    let (store, _) = Store::open(path).unwrap();
    store
        .append(1, vec![created(session("ses_1", None, 1))])
        .await
        .unwrap();
    for i in 1..ROWS {
        if i % 20 == 0 {
            // As in a real session, whose title and cost change all the time.
            store
                .append(1, vec![updated(session("ses_1", None, 2))])
                .await
                .unwrap();
            continue;
        }
        let text = "x".repeat(usize::try_from(i * i % 9000).unwrap());
        store
            .append(
                1,
                vec![part("ses_1", "msg_1", &format!("prt_{i:04}"), &text)],
            )
            .await
            .unwrap();
    }
}

/// Damages a copy of a filled store, and returns it with what is expected of the original.
struct Case {
    _folder: tempfile::TempDir,
    path: PathBuf,
    into: PathBuf,
}

fn case(bytes: &[u8]) -> Case {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    fs::write(&path, bytes).unwrap();
    let into = folder.path().join("new.db");
    Case {
        _folder: folder,
        path,
        into,
    }
}

fn check_open() -> OpenOptions {
    OpenOptions {
        check: true,
        ..OpenOptions::default()
    }
}

/// Opening is refused with a message that names the file, and the file is as it was.
fn refused(path: &Path) -> StoreError {
    let before = fs::read(path).unwrap();
    let Err(error) = Store::open_with(path, &check_open()) else {
        panic!("{} was opened: {:?}", path.display(), before.get(..16));
    };
    assert!(
        error.to_string().contains(path.to_str().unwrap()),
        "{error}"
    );
    assert_eq!(before, fs::read(path).unwrap(), "the file is untouched");
    error
}

fn lost(report: &SalvageReport) -> i64 {
    report.lost.iter().map(|(a, b)| b - a + 1).sum()
}

async fn salvaged(case: &Case) -> SalvageReport {
    let before = fs::read(&case.path).unwrap();
    let report = salvage(&case.path, &case.into).unwrap();
    assert_eq!(
        before,
        fs::read(&case.path).unwrap(),
        "the damaged file is untouched"
    );
    let (store, opened) = Store::open_with(&case.into, &check_open()).unwrap();
    assert!(opened.checked && !opened.unclean);
    assert_eq!(store.verify_chain().unwrap().rows, report.rows);
    assert_sound(&store).await;
    report
}

#[tokio::test]
async fn damaged_files_are_refused_and_what_can_be_read_is_salvaged() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.db");
    filled(&whole).await;
    let bytes = fs::read(&whole).unwrap();
    let pages = bytes.len() / 4096;

    // The first page overwritten: SQLite itself can read nothing of such a file.
    let mut head = bytes.clone();
    head[..4096].fill(0xA5);
    // Cut off in the middle of a page.
    let cut = bytes[..bytes.len() * 2 / 3 + 100].to_vec();
    // Every tenth page overwritten.
    let mut holes = bytes.clone();
    for page in (2..pages).step_by(10) {
        holes[page * 4096..(page + 1) * 4096].fill(0);
    }
    for (name, damaged, least) in [
        ("head", head, ROWS),
        ("cut", cut, ROWS / 2),
        ("holes", holes, ROWS / 2),
    ] {
        let case = case(&damaged);
        let error = refused(&case.path);
        assert_eq!(error.code(), "store.damaged", "{name}: {error}");
        assert!(error.hint().unwrap().contains("outrigger session salvage"));
        let report = salvaged(&case).await;
        let rows = i64::try_from(report.rows).unwrap();
        assert!(rows >= least, "{name}: {report}");
        assert!(report.altered.is_empty(), "{name}: {report}");
        // Of a file that was cut off the indexes of the last rows may be gone as well.
        assert!(
            rows + lost(&report) == ROWS || report.missing_bytes > 0,
            "{name}: {report}"
        );
        assert_eq!(report.sessions, 1, "{name}: {report}");
    }
}

#[tokio::test]
async fn rows_in_the_write_ahead_log_are_salvaged_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let fault = [(fault::VARIABLE, "test.answered:5")];
    assert!(killed(
        child("crash::child_appends", &path, &fault).wait().unwrap()
    ));
    // The main file holds next to nothing yet, and loses that.
    let mut bytes = fs::read(&path).unwrap();
    bytes.fill(0);
    fs::write(&path, bytes).unwrap();
    let into = folder.path().join("new.db");
    let report = salvage(&path, &into).unwrap();
    assert_eq!((report.rows, report.lost.len()), (15, 0), "{report}");

    // Even when there is no main file any more: SQLite would delete the log here.
    let wal = fs::read(folder.path().join("store.db-wal")).unwrap();
    fs::write(&path, "").unwrap();
    assert_eq!(refused(&path).code(), "store.damaged");
    assert_eq!(wal, fs::read(folder.path().join("store.db-wal")).unwrap());
    fs::remove_file(&into).unwrap();
    assert_eq!(salvage(&path, &into).unwrap().rows, 15);
}

#[tokio::test]
async fn a_row_with_a_flipped_letter_is_kept_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.db");
    filled(&whole).await;
    let mut bytes = fs::read(&whole).unwrap();
    // The row's only other copy is in the projection, whose rows are not rows of the log.
    let needle = b"prt_0007\",\"sessionID";
    let places: Vec<_> = bytes
        .windows(needle.len())
        .enumerate()
        .filter(|(_, w)| *w == needle)
        .map(|(i, _)| i)
        .collect();
    for at in places {
        bytes[at + 7] = b'8';
    }
    let case = case(&bytes);
    let report = salvaged(&case).await;
    assert_eq!(
        (report.rows, report.altered.as_slice()),
        (ROWS as u64, &[8][..]),
        "{report}"
    );
    assert!(report.to_string().contains("may be wrong: [8]"), "{report}");
}

#[tokio::test]
async fn garbage_gives_a_message_and_nothing_is_made_of_it() {
    for garbage in [
        b"not a database".repeat(1000),
        b"SQLite format 3\0".to_vec(),
        vec![0; 8192],
        b"x".to_vec(),
    ] {
        let case = case(&garbage);
        assert_eq!(refused(&case.path).code(), "store.damaged");
        let error = salvage(&case.path, &case.into).unwrap_err();
        assert_eq!(error.code(), "store.nothing_left", "{error}");
        assert!(!case.into.exists());
    }
}

#[tokio::test]
async fn a_salvage_overwrites_nothing_and_leaves_a_store_in_use_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let (store, _) = Store::open(&path).unwrap();
    let into = folder.path().join("new.db");
    assert_eq!(salvage(&path, &into).unwrap_err().code(), "store.busy");
    store
        .append(1, vec![created(session("ses_1", None, 1))])
        .await
        .unwrap();
    drop(store);
    fs::write(&into, "mine").unwrap();
    assert_eq!(salvage(&path, &into).unwrap_err().code(), "store.exists");
    assert_eq!(fs::read(&into).unwrap(), b"mine");
    assert_eq!(
        salvage(&folder.path().join("none.db"), &into.with_extension("x"))
            .unwrap_err()
            .code(),
        "store.io"
    );
}

#[tokio::test]
async fn newer_and_foreign_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let newer = folder.path().join("newer.db");
    filled(&newer).await;
    rusqlite::Connection::open(&newer)
        .unwrap()
        .pragma_update(None, "user_version", 77)
        .unwrap();
    let error = refused(&newer);
    assert_eq!(error.code(), "store.newer");
    assert!(error.to_string().contains("has format 77"), "{error}");

    let foreign = folder.path().join("foreign.db");
    let other = rusqlite::Connection::open(&foreign).unwrap();
    other.execute_batch("CREATE TABLE t(x)").unwrap();
    drop(other);
    assert_eq!(refused(&foreign).code(), "store.foreign");
    rusqlite::Connection::open(&foreign)
        .unwrap()
        .pragma_update(None, "user_version", 1)
        .unwrap();
    assert_eq!(refused(&foreign).code(), "store.foreign");
}

#[tokio::test]
async fn damage_that_shows_only_in_use_is_the_same_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    filled(&path).await;
    let mut bytes = fs::read(&path).unwrap();
    let end = bytes.len();
    // Closed cleanly, so opening does not look at these pages.
    bytes[8192..end].fill(0xFF);
    fs::write(&path, bytes).unwrap();
    let result = Store::open(&path).and_then(|(store, _)| store.verify_chain().map(|_| ()));
    assert_eq!(result.unwrap_err().code(), "store.damaged");
}
