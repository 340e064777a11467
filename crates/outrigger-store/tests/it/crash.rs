//! Crashes: the real process, killed at the named points.

use outrigger_store::{RecordQuery, Store, fault};

use crate::support::*;

/// Records of one append of [`child_appends`].
const EACH: usize = 3;

fn records(i: usize) -> Vec<outrigger_protocol::log::LogRecord> {
    let id = format!("msg_{i}");
    vec![
        message("ses_1", &id, 0.0),
        part("ses_1", &id, "prt_1", "x"),
        step("ses_1", "trn_1", i as u64, false),
    ]
}

#[tokio::test]
#[ignore = "started by the tests of this module"]
async fn child_appends() {
    let Some(path) = given_path() else { return };
    let (store, _) = Store::open(&path).unwrap();
    for i in 0..5 {
        store.append(1, records(i)).await.unwrap();
        fault::point("test.answered");
    }
}

#[tokio::test]
async fn a_kill_leaves_whole_appends_and_the_store_goes_on() {
    for (fault, appends) in [
        ("store.before_commit", 0),
        ("store.after_commit", 1),
        ("store.before_commit:3", 2),
        ("store.after_commit:3", 3),
        ("test.answered:4", 4),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        let status = child("crash::child_appends", &path, &[(fault::VARIABLE, fault)])
            .wait()
            .unwrap();
        assert!(killed(status), "{fault}: {status}");

        let (store, report) = Store::open(&path).unwrap();
        assert!(
            report.unclean && report.checked && report.alone,
            "{fault}: {report:?}"
        );
        assert_eq!(
            store.records(&RecordQuery::default()).unwrap().len(),
            EACH * appends,
            "{fault}"
        );
        let found = store.messages(&"ses_1".into()).unwrap();
        assert_eq!(found.len(), appends, "{fault}");
        assert!(found.iter().all(|m| m.parts.len() == 1), "{fault}");
        assert_eq!(store.open_turns().unwrap().len(), appends.min(1), "{fault}");
        store.append(2, records(9)).await.unwrap();
        assert_sound(&store).await;
        drop(store);
        let (_, report) = Store::open(&path).unwrap();
        assert!(!report.unclean, "{fault}: closed cleanly afterwards");
    }
}

#[tokio::test]
async fn a_kill_while_the_file_is_made_leaves_one_that_can_be_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let fault = [(fault::VARIABLE, "store.before_migrate_commit")];
    let status = child("crash::child_appends", &path, &fault).wait().unwrap();
    assert!(killed(status), "{status}");
    let (store, _) = Store::open(&path).unwrap();
    store.append(1, records(0)).await.unwrap();
    assert_sound(&store).await;
}

#[tokio::test]
async fn a_point_that_is_not_reached_kills_no_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let fault = [(fault::VARIABLE, "store.before_commit:99")];
    assert!(
        child("crash::child_appends", &path, &fault)
            .wait()
            .unwrap()
            .success()
    );
    assert_eq!(
        Store::open(&path).unwrap().0.head().unwrap().seq,
        5 * EACH as i64
    );
}

#[tokio::test]
async fn a_process_that_is_killed_holds_up_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let (store, _) = Store::open(&path).unwrap();
    // Killed with the write lock held and its rows in the log's file, not committed.
    let fault = [(fault::VARIABLE, "store.before_commit:3")];
    let mut other = child("crash::child_appends", &path, &fault);
    while other.try_wait().unwrap().is_none() {
        store
            .append(1, vec![part("ses_1", "msg_9", "prt_9", "y")])
            .await
            .unwrap();
    }
    assert!(killed(other.wait().unwrap()));
    store.append(1, records(7)).await.unwrap();
    let ids: Vec<_> = store
        .messages(&"ses_1".into())
        .unwrap()
        .iter()
        .map(|m| m.info.id().to_string())
        .collect();
    assert_eq!(ids, ["msg_0", "msg_1", "msg_7"]);
    assert_sound(&store).await;
    // This store is alive, so its open log is no sign of a crash.
    let (_, report) = Store::open(&path).unwrap();
    assert!(
        !report.alone && !report.unclean && !report.checked,
        "{report:?}"
    );
}
