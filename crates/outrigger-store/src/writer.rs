//! The writer: one thread with one connection. What is queued is folded into one transaction.

use std::any::Any;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use tokio::sync::oneshot;

use crate::audit::{Entry, Retention, Sealer};
use crate::chain::{self, Row};
use crate::error::StoreError;
use crate::open::beside;
use crate::{fault, project};

/// Most writes in one transaction.
const MOST_WRITES: usize = 512;
/// Most text in one transaction, in bytes, not counting the write that goes over it.
const MOST_BYTES: usize = 8 << 20;
/// Longest time that a record without an answer waits for company.
const LAZY_DELAY: Duration = Duration::from_millis(50);

/// Records of the audit after which it is sealed, when no flush to disk comes before.
const SEAL_AFTER: usize = 1000;

pub(crate) type Answer<T> = oneshot::Sender<Result<T, StoreError>>;
/// Makes a new value of a `meta` key from the old one; `None` is no value.
pub(crate) type Update = Box<dyn FnOnce(Option<String>) -> Option<String> + Send>;
/// Work on the writer's connection, outside of a transaction.
pub(crate) type Work = Box<dyn FnOnce(&mut Connection) + Send>;

/// Something for the writer to do.
pub(crate) enum Job {
    Write(Write),
    /// Answered when everything before it is committed; with `sync` also on disk.
    Flush {
        sync: bool,
        answer: Answer<()>,
    },
    /// Done when everything before it is committed.
    Run(Work),
    /// How much of the audit is kept.
    Keep(Retention),
}

/// Something to write in a transaction.
pub(crate) enum Write {
    Append {
        rows: Vec<Row>,
        /// Records of the audit.
        audit: Vec<Entry>,
        /// None for records that no one waits for.
        answer: Option<Answer<Vec<i64>>>,
    },
    Meta {
        key: String,
        update: Option<Update>,
        answer: Answer<Option<String>>,
    },
}

/// What a write gave.
enum Done {
    Seqs(Vec<i64>),
    Value(Option<String>),
}

impl Write {
    fn bytes(&self) -> usize {
        match self {
            Self::Append { rows, audit, .. } => {
                let rows = rows.iter().map(|row| row.body.len());
                rows.chain(audit.iter().map(|entry| entry.body.len())).sum()
            }
            Self::Meta { .. } => 0,
        }
    }
    fn audited(&self) -> usize {
        match self {
            Self::Append { audit, .. } => audit.len(),
            Self::Meta { .. } => 0,
        }
    }
    fn is_lazy(&self) -> bool {
        matches!(self, Self::Append { answer: None, .. })
    }
    fn answer(self, done: Result<Done, StoreError>) {
        // An answer that no one waits for any more is no error: what was written stays.
        match self {
            Self::Append { answer, .. } => {
                if let Some(answer) = answer {
                    let _ = answer.send(done.map(|done| match done {
                        Done::Seqs(seqs) => seqs,
                        Done::Value(_) => Vec::new(),
                    }));
                }
            }
            Self::Meta { answer, .. } => {
                let _ = answer.send(done.map(|done| match done {
                    Done::Value(value) => value,
                    Done::Seqs(_) => None,
                }));
            }
        }
    }
}

/// The handle: sends jobs, and ends the thread when dropped.
pub(crate) struct Writer {
    path: PathBuf,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread. `keep` is dropped when the connection is closed.
    pub(crate) fn start(
        conn: Connection,
        path: &Path,
        keep: impl Any + Send,
    ) -> Result<Self, StoreError> {
        let (jobs, queue) = channel();
        let mut state = Loop {
            conn,
            path: path.to_path_buf(),
            queue,
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
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Queues a job.
    pub(crate) fn send(&self, job: Job) -> Result<(), StoreError> {
        self.jobs
            .as_ref()
            .and_then(|jobs| jobs.send(job).ok())
            .ok_or_else(|| self.closed())
    }

    pub(crate) fn closed(&self) -> StoreError {
        StoreError::Closed {
            path: self.path.clone(),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Without a sender the thread works off the queue and ends.
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

/// Jobs that are done together.
#[derive(Default)]
struct Batch {
    writes: Vec<Write>,
    flushes: Vec<(bool, Answer<()>)>,
    work: Option<Work>,
    bytes: usize,
    /// Since when a record waits for company.
    lazy_since: Option<Instant>,
    /// Someone waits for the answer.
    awaited: bool,
    keep: Option<Retention>,
}

impl Batch {
    fn push(&mut self, job: Job) {
        match job {
            Job::Write(write) => {
                self.bytes += write.bytes();
                if write.is_lazy() {
                    self.lazy_since.get_or_insert_with(Instant::now);
                } else {
                    self.awaited = true;
                }
                self.writes.push(write);
            }
            Job::Flush { sync, answer } => {
                self.flushes.push((sync, answer));
                self.awaited = true;
            }
            Job::Run(work) => {
                self.work = Some(work);
                self.awaited = true;
            }
            Job::Keep(retention) => self.keep = Some(retention),
        }
    }
    fn is_full(&self) -> bool {
        self.work.is_some() || self.writes.len() >= MOST_WRITES || self.bytes >= MOST_BYTES
    }
}

struct Loop {
    conn: Connection,
    path: PathBuf,
    queue: Receiver<Job>,
    /// Records without an answer that could not be written since the last flush, and why.
    lost: Option<(usize, StoreError)>,
    folder_synced: bool,
    sealer: Sealer,
    /// Records of the audit that were written since the last seal.
    unsealed: usize,
    retention: Retention,
}

impl Loop {
    fn run(&mut self) {
        while let Some(batch) = self.next() {
            self.carry_out(batch);
        }
        if self.unsealed > 0 {
            self.seal();
            if let Err(error) = self.sync() {
                tracing::warn!(%error, "the store was not synced");
            }
        }
    }

    /// Waits for the next batch; `None` when the store is dropped and the queue empty.
    fn next(&self) -> Option<Batch> {
        let mut batch = Batch::default();
        batch.push(self.queue.recv().ok()?);
        while !batch.is_full() {
            let wait = match batch.lazy_since {
                Some(since) if !batch.awaited => LAZY_DELAY.saturating_sub(since.elapsed()),
                _ => Duration::ZERO,
            };
            match self.queue.recv_timeout(wait) {
                Ok(job) => batch.push(job),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        Some(batch)
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
            Err(error) => tracing::warn!(%error, "the audit was not sealed"),
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
