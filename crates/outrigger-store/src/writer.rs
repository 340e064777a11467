//! The writer: one thread with one connection. What is queued is folded into one transaction.

use std::any::Any;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use crate::audit::{Retention, Sealer};
use crate::chain;
use crate::error::StoreError;
use crate::open::beside;
use crate::queue::{Answer, Batch, Done, Job, Queue, Update, Write};
use crate::{fault, project};

/// Records of the audit after which it is sealed, when no flush to disk comes before.
const SEAL_AFTER: usize = 1000;

/// The handle: sends jobs, and ends the thread when dropped.
pub(crate) struct Writer {
    path: PathBuf,
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread. `keep` is dropped when the connection is closed.
    pub(crate) fn start(
        conn: Connection,
        path: &Path,
        keep: impl Any + Send,
    ) -> Result<Self, StoreError> {
        let queue = Arc::new(Queue::default());
        let mut state = Loop {
            conn,
            path: path.to_path_buf(),
            queue: Arc::clone(&queue),
            lost: None,
            folder_synced: false,
            sealer: Sealer::new(path),
            unsealed: 0,
            retention: Retention::default(),
        };
        let thread = std::thread::Builder::new()
            .name("outrigger-store".into())
            .spawn(move || {
                state.run();
                drop(state);
                drop(keep);
            })
            .map_err(|e| StoreError::io(path, "start the writer of", e))?;
        Ok(Self {
            path: path.to_path_buf(),
            queue,
            thread: Some(thread),
        })
    }

    /// Queues a job.
    pub(crate) fn send(&self, job: Job) -> Result<(), StoreError> {
        match self.queue.send(job) {
            true => Ok(()),
            false => Err(self.closed()),
        }
    }

    pub(crate) fn closed(&self) -> StoreError {
        StoreError::Closed {
            path: self.path.clone(),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The thread works off what is in it and ends.
        self.queue.close();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

struct Loop {
    conn: Connection,
    path: PathBuf,
    queue: Arc<Queue>,
    /// Records without an answer that could not be written since the last flush, and why.
    lost: Option<(usize, StoreError)>,
    folder_synced: bool,
    sealer: Sealer,
    /// Records of the audit that were written since the last seal.
    unsealed: usize,
    retention: Retention,
}

/// Also when the thread has panicked.
impl Drop for Loop {
    fn drop(&mut self) {
        self.queue.abandon();
    }
}

impl Loop {
    fn run(&mut self) {
        while let Some(batch) = self.queue.next() {
            self.carry_out(batch);
        }
        if self.unsealed > 0 {
            self.seal();
            if let Err(error) = self.sync() {
                tracing::warn!(%error, "the store was not synced");
            }
        }
    }

    fn carry_out(&mut self, mut batch: Batch) {
        self.retention = batch.keep.unwrap_or(self.retention);
        if !batch.writes.is_empty() {
            match commit(&mut self.conn, &mut batch.writes) {
                Ok(done) => {
                    self.unsealed += batch.writes.iter().map(Write::audited).sum::<usize>();
                    for (write, done) in batch.writes.into_iter().zip(done) {
                        write.answer(Ok(done));
                    }
                }
                Err(error) => self.fail(batch.writes, error),
            }
        }
        let sync = batch.flushes.iter().any(|(sync, _)| *sync);
        if self.unsealed >= SEAL_AFTER || self.unsealed > 0 && sync {
            self.seal();
        }
        if !batch.flushes.is_empty() {
            self.answer_flushes(batch.flushes);
        }
        if let Some(work) = batch.work {
            work(&mut self.conn);
        }
    }

    /// Seals the audit, and removes what is over its retention. Nobody waits for either, so what fails is told in the log;
    /// it is done again with the next record.
    fn seal(&mut self) {
        let path = &self.path;
        let sql = |e| StoreError::sqlite(path, "seal the audit", e);
        let sealed = (|| {
            let tx = self
                .conn
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .map_err(sql)?;
            self.sealer.seal(&tx)?;
            tx.commit().map_err(sql)?;
            crate::audit::prune(&mut self.conn, &mut self.sealer, self.retention, path)
        })();
        match sealed {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "old records of the audit were removed"),
            Err(error) => {
                tracing::warn!(%error, "the audit was not sealed");
                // What it took over from the file may not be in the store.
                self.sealer = Sealer::new(path);
            }
        }
        self.unsealed = 0;
    }

    fn fail(&mut self, writes: Vec<Write>, error: rusqlite::Error) {
        let error = StoreError::sqlite(&self.path, "write", error);
        let mut lazy = 0;
        for write in writes {
            if let Write::Append {
                rows,
                audit,
                answer: None,
            } = &write
            {
                lazy += rows.len().max(audit.len());
            }
            write.answer(Err(error.clone()));
        }
        if lazy > 0 {
            tracing::warn!(records = lazy, %error, "records that no one waited for were not written");
            self.lost.get_or_insert((0, error)).0 += lazy;
        }
    }

    fn answer_flushes(&mut self, flushes: Vec<(bool, Answer<()>)>) {
        let synced = if flushes.iter().any(|(sync, _)| *sync) {
            self.sync()
        } else {
            Ok(())
        };
        let mut lost = self.lost.take().map(|(count, cause)| StoreError::LazyLost {
            count,
            cause: Box::new(cause),
        });
        for (sync, answer) in flushes {
            let result = match lost.take() {
                Some(error) => Err(error),
                None if sync => synced.clone(),
                None => Ok(()),
            };
            let _ = answer.send(result);
        }
    }

    /// Puts what is committed on disk. In WAL mode that is the log's file alone, which is what `synchronous=FULL` would
    /// sync at every commit; frames that are not in it any more were synced into the main file by the checkpoint.
    fn sync(&mut self) -> Result<(), StoreError> {
        let wal = beside(&self.path, "-wal");
        match File::open(&wal) {
            Ok(file) => file
                .sync_data()
                .map_err(|e| StoreError::io(&wal, "sync", e))?,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(StoreError::io(&wal, "sync", e)),
        }
        if !self.folder_synced {
            // The first time also the folder, in which the files are new.
            let folder = match self.path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => folder,
                _ => Path::new("."),
            };
            File::open(folder)
                .and_then(|folder| folder.sync_all())
                .map_err(|e| StoreError::io(folder, "sync", e))?;
            self.folder_synced = true;
        }
        // What it seals is on disk now.
        self.sealer.put_beside()
    }
}

/// One transaction for all of `writes`: all of them are in the file afterwards, or none.
fn commit(conn: &mut Connection, writes: &mut [Write]) -> rusqlite::Result<Vec<Done>> {
    // IMMEDIATE: the head that is read below cannot change before the commit, whoever else writes to the file.
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut head = chain::head(&tx)?;
    let mut audit_end = None;
    let mut done = Vec::with_capacity(writes.len());
    for write in writes.iter_mut() {
        done.push(match write {
            Write::Append { rows, audit, .. } => {
                if !audit.is_empty() {
                    let end = match &mut audit_end {
                        Some(end) => end,
                        None => audit_end.insert(crate::audit::head(&tx)?),
                    };
                    for entry in audit {
                        crate::audit::append(&tx, end, entry)?;
                    }
                }
                let mut seqs = Vec::with_capacity(rows.len());
                for row in rows {
                    let seq = head.seq + 1;
                    chain::append(&tx, &mut head, seq, row)?;
                    project::apply(&tx, seq, row)?;
                    seqs.push(seq);
                }
                Done::Seqs(seqs)
            }
            Write::Meta { key, update, .. } => Done::Value(update_meta(&tx, key, update.take())?),
        });
    }
    fault::point("store.before_commit");
    tx.commit()?;
    fault::point("store.after_commit");
    Ok(done)
}

fn update_meta(
    conn: &Connection,
    key: &str,
    update: Option<Update>,
) -> rusqlite::Result<Option<String>> {
    let old = meta(conn, key)?;
    let new = match update {
        Some(update) => update(old),
        None => old,
    };
    match &new {
        Some(value) => conn
            .prepare_cached("INSERT INTO meta(key, value) VALUES (?,?) ON CONFLICT DO UPDATE SET value = excluded.value")?
            .execute(params![key, value])?,
        None => conn.prepare_cached("DELETE FROM meta WHERE key = ?")?.execute([key])?,
    };
    Ok(new)
}

/// The value of a `meta` key.
pub(crate) fn meta(conn: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    conn.prepare_cached("SELECT value FROM meta WHERE key = ?")?
        .query_row([key], |row| row.get(0))
        .optional()
}

/// Values whose key begins with `prefix`, by key.
pub(crate) fn meta_list(
    conn: &Connection,
    prefix: &str,
) -> rusqlite::Result<Vec<(String, String)>> {
    conn.prepare_cached(
        "SELECT key, value FROM meta WHERE substr(key, 1, length(?1)) = ?1 ORDER BY key",
    )?
    .query_map([prefix], |row| Ok((row.get(0)?, row.get(1)?)))?
    .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use outrigger_protocol::id::EventId;
    use outrigger_protocol::log::LogRecord;

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
}
