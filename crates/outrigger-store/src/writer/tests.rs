use std::path::Path;

use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::id::EventId;
use outrigger_protocol::log::LogRecord;

use super::MAX_HERE;
use crate::store::Store;

fn record(bytes: usize) -> LogRecord {
    LogRecord::Event(Box::new(outrigger_protocol::event::BusEvent {
        id: EventId("x".repeat(bytes)),
        event: outrigger_protocol::event::Event::FileEdited { file: "a".into() },
    }))
}

async fn open(path: &Path) -> Store {
    Store::open(path).unwrap().0
}

async fn most_pages(store: &Store, more: Option<i64>) {
    store
        .work("set the limit", move |conn| {
            let now: i64 = conn.query_row("PRAGMA page_count", [], |row| row.get(0))?;
            let most = more.map_or(1 << 30, |more| now + more);
            conn.query_row(&format!("PRAGMA max_page_count = {most}"), [], |_| Ok(()))
        })
        .await
        .unwrap();
}

#[tokio::test]
async fn a_full_disk_fails_the_whole_batch_and_later_writes_work() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("store.db")).await;
    store.append(1, vec![record(10)]).await.unwrap();
    most_pages(&store, Some(10)).await;

    // The writer is held up until all four jobs are queued, so that they are one batch.
    let (go, gate) = std::sync::mpsc::channel::<()>();
    let held = store.work("wait", move |_| {
        let _ = gate.recv();
        Ok(())
    });
    let small = store.append(2, vec![record(10)]);
    let big = store.append(2, vec![record(10), record(100_000)]);
    let (held, small, big, (), flushed, ()) = tokio::join!(
        held,
        small,
        big,
        async { store.append_lazily(2, vec![record(10)]) },
        store.flush(false),
        async { drop(go) },
    );
    held.unwrap();
    for error in [small.unwrap_err(), big.unwrap_err()] {
        assert_eq!(error.code(), "store.full", "{error}");
        assert!(error.hint().is_some());
    }
    let lost = flushed.unwrap_err();
    assert_eq!(lost.code(), "store.lazy_lost", "{lost}");
    assert!(lost.to_string().starts_with("1 records"), "{lost}");
    store.flush(true).await.unwrap();
    assert_eq!(store.head().unwrap().seq, 1, "nothing is half-written");

    assert_eq!(
        store.append(3, vec![record(10)]).await.unwrap(),
        [2],
        "what fits is written"
    );
    most_pages(&store, None).await;
    assert_eq!(store.append(3, vec![record(100_000)]).await.unwrap(), [3]);
    assert!(store.verify_chain().unwrap().is_valid());
}

/// Commits on the threads of callers since the writer last moved the log into the file, once the writer rests.
fn commits_here(store: &Store) -> usize {
    let core = store.writer().core.lock().unwrap();
    core.here.unwrap()
}

#[tokio::test]
async fn few_records_are_committed_by_who_waits_for_them_and_keep_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("store.db")).await;
    // Which thread commits is read from the count, not from how soon the answer comes: where the writer is given the only
    // processor at once, its answers are there at the first poll too.
    store.flush(false).await.unwrap();
    assert_eq!(commits_here(&store), 0);
    store.append(1, vec![record(10)]).await.unwrap();
    assert_eq!(commits_here(&store), 1, "who waits commits");
    store.append_lazily(1, vec![record(11)]);
    // By the writer, where 50 ms have gone by meanwhile.
    store.append(1, vec![record(12)]).await.unwrap();
    let before = commits_here(&store);
    store.append(1, vec![record(100_000)]).await.unwrap();
    assert_eq!(commits_here(&store), before, "much is the writer's");
    let mut last = before;
    let mut moved = 0;
    for _ in 0..2 * MAX_HERE {
        store.append(1, vec![record(13)]).await.unwrap();
        let here = commits_here(&store);
        moved += usize::from(here < last);
        last = here;
    }
    assert!(moved > 0, "the log is moved by the writer");
    let records = store.records(&crate::RecordQuery::default()).unwrap();
    let sizes: Vec<usize> = records
        .iter()
        .map(|found| match &found.record {
            LogRecord::Event(event) => event.id.0.len(),
            _ => 0,
        })
        .take(5)
        .collect();
    assert_eq!(sizes, [10, 11, 12, 100_000, 13]);
    assert_eq!(records.len(), 4 + 2 * MAX_HERE);
    assert!(store.verify_chain().unwrap().is_valid());
}

#[tokio::test]
async fn who_waits_for_a_record_is_not_held_up_by_another_process_that_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = open(&path).await;
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // On the only thread of this runtime: an append that blocked it would wait for the COMMIT that comes after it.
    let (appended, ()) = tokio::join!(store.append(1, vec![record(10)]), async {
        tokio::task::yield_now().await;
        other.execute_batch("COMMIT").unwrap();
    });
    assert_eq!(appended.unwrap(), [1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_of_many_are_all_there_each_in_its_order() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("store.db")).await;
    let mut tasks = tokio::task::JoinSet::new();
    for one in 1..=8 {
        let store = store.clone();
        tasks.spawn(async move {
            let mut last = 0;
            for turn in 0..100 {
                if turn % 3 == 0 {
                    store.append_lazily(1, vec![record(one)]);
                }
                let seqs = store.append(turn, vec![record(one)]).await.unwrap();
                assert!(seqs.iter().all(|seq| *seq > last), "{seqs:?} behind {last}");
                last = seqs.last().copied().unwrap_or(last);
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    store.flush(true).await.unwrap();
    assert_eq!(store.head().unwrap().seq, 8 * 134);
    assert!(store.verify_chain().unwrap().is_valid());
}
