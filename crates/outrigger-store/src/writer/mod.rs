//! The writer: one connection, and a thread that combines queued jobs into one transaction.
//!
//! A caller that waits for a few small records while no other caller writes commits them on its own thread: waking the
//! writer and being woken by it cost more than the commit. It does not wait for the connection, for another process that
//! writes to the file, or (except for SQLite's own checkpoints of a long log) for the disk.

#[cfg(test)]
mod tests;

use std::any::Any;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use outrigger_stdx::sync::lock;
use rusqlite::{Connection, ErrorCode, OptionalExtension, TransactionBehavior, params};

use crate::audit::{Retention, Sealer};
use crate::chain;
use crate::error::StoreError;
use crate::open::beside;
use crate::queue::{Batch, Done, Job, Queue, ReplySender, Update, Write};
use crate::{fault, project};

/// Number of audit records after which it is sealed, unless a flush to disk comes first.
const SEAL_AFTER: usize = 1000;
/// Number of commits on callers' threads after which the writer runs a checkpoint. A commit of a few records adds six to
/// eight pages, and at 1,000 SQLite would do it on the caller's thread.
const MAX_HERE: usize = 100;

/// The handle: sends jobs, and ends the thread when dropped.
pub(crate) struct Writer {
    path: PathBuf,
    queue: Arc<Queue>,
    core: Arc<Mutex<Core>>,
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
        let sql = |e| StoreError::sqlite(path, "start the writer of", e);
        let journal: String = conn
            .pragma_query_value(None, "journal_mode", |row| row.get(0))
            .map_err(sql)?;
        let busy_timeout: u32 = conn
            .pragma_query_value(None, "busy_timeout", |row| row.get(0))
            .map_err(sql)?;
        let core = Core {
            conn,
            path: path.to_path_buf(),
            // Every other kind of journal is synced at each commit.
            here: (journal == "wal").then_some(0),
            busy_timeout: Duration::from_millis(busy_timeout.into()),
            lost: None,
            folder_synced: false,
            sealer: Sealer::new(path),
            unsealed: 0,
            retention: Retention::default(),
            _keep: Box::new(keep),
        };
        let core = Arc::new(Mutex::new(core));
        let (work, held) = (Arc::clone(&queue), Arc::clone(&core));
        let thread = std::thread::Builder::new()
            .name("outrigger-store".into())
            .spawn(move || run(&work, &held))
            .map_err(|e| StoreError::io(path, "start the writer of", e))?;
        Ok(Self {
            path: path.to_path_buf(),
            queue,
            core,
            thread: Some(thread),
        })
    }

    /// Queues a job. Awaited records may be committed when this returns.
    pub(crate) fn send(&self, job: Job) -> Result<(), StoreError> {
        let here = job.is_awaited_append();
        if !self.queue.send(job, here) {
            return Err(self.closed());
        }
        if here && !self.commit_here() {
            self.queue.wake();
        }
        Ok(())
    }

    /// Commits queued jobs on this thread, if they are few and no other thread is writing.
    fn commit_here(&self) -> bool {
        let Ok(mut core) = self.core.try_lock() else {
            return false;
        };
        if !core.has_room_here() {
            return false;
        }
        let Some(batch) = self.queue.take_few() else {
            return false;
        };
        if let Err(batch) = core.commit_here(batch) {
            self.queue.put_back(batch);
        }
        true
    }

    pub(crate) fn closed(&self) -> StoreError {
        StoreError::Closed {
            path: self.path.clone(),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The thread completes its jobs and ends.
        self.queue.close();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

/// The connection with its state, used by one thread at a time.
struct Core {
    conn: Connection,
    path: PathBuf,
    /// Number of commits on callers' threads since the last checkpoint; `None` if they are not allowed.
    here: Option<usize>,
    /// Time that a commit of the writer waits for other processes.
    busy_timeout: Duration,
    /// Number of records without a waiting caller that could not be written since the last flush, and the cause.
    lost: Option<(usize, StoreError)>,
    folder_synced: bool,
    sealer: Sealer,
    /// Number of audit records written since the last seal.
    unsealed: usize,
    retention: Retention,
    /// After the connection, which is closed before this is dropped.
    _keep: Box<dyn Any + Send>,
}

/// Abandons the queue when its consumer ends, even by a panic.
struct Taker<'a>(&'a Queue);

impl Drop for Taker<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

fn run(queue: &Queue, core: &Mutex<Core>) {
    let _taker = Taker(queue);
    while queue.wait() {
        let Ok(mut core) = core.lock() else { return };
        let batch = queue.take();
        core.carry_out(batch);
    }
    lock(core).end();
}

impl Core {
    fn end(&mut self) {
        if self.unsealed > 0 {
            self.seal();
            if let Err(error) = self.sync() {
                tracing::warn!(%error, "the store was not synced");
            }
        }
    }

    fn has_room_here(&self) -> bool {
        self.here.is_some_and(|here| here < MAX_HERE) && self.unsealed < SEAL_AFTER
    }

    /// Commits records without waiting; returns them if another process writes to the file.
    fn commit_here(&mut self, mut batch: Batch) -> Result<(), Batch> {
        if batch.writes.is_empty() {
            return Ok(());
        }
        let committed = {
            let _ = self.conn.busy_timeout(Duration::ZERO);
            let committed = commit(&mut self.conn, &mut batch.writes);
            let _ = self.conn.busy_timeout(self.busy_timeout);
            committed
        };
        if let Err(error) = &committed
            && error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
        {
            return Err(batch);
        }
        self.here = self.here.map(|here| here + 1);
        self.committed(batch.writes, committed);
        Ok(())
    }

    fn carry_out(&mut self, mut batch: Batch) {
        self.retention = batch.keep.unwrap_or(self.retention);
        if !batch.writes.is_empty() {
            let committed = commit(&mut self.conn, &mut batch.writes);
            self.committed(batch.writes, committed);
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
        if self.here.is_some_and(|here| here >= MAX_HERE) {
            self.checkpoint();
        }
    }

    /// Runs a checkpoint, as far as no reader prevents it.
    fn checkpoint(&mut self) {
        let moved = self
            .conn
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        if let Err(error) = moved {
            tracing::debug!(%error, "the log of the store was not moved into the file");
        }
        self.here = Some(0);
    }

    fn committed(&mut self, writes: Vec<Write>, committed: rusqlite::Result<Vec<Done>>) {
        match committed {
            Ok(done) => {
                self.unsealed += writes.iter().map(Write::audited).sum::<usize>();
                for (write, done) in writes.into_iter().zip(done) {
                    write.answer(Ok(done));
                }
            }
            Err(error) => self.fail(writes, error),
        }
    }

    /// Seals the audit, and applies the retention. No caller waits for either, so failures are logged; it is retried with
    /// the next record.
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
                // The seal copied from the file may not be in the store.
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

    fn answer_flushes(&mut self, flushes: Vec<(bool, ReplySender<()>)>) {
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

    /// Syncs committed data to disk. In WAL mode that is the log's file alone, which `synchronous=FULL` would sync at every
    /// commit; frames that are no longer in it were synced into the main file by the checkpoint.
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
        // The sealed records are on disk now.
        self.sealer.put_beside()
    }
}

/// Commits all of `writes` in one transaction.
fn commit(conn: &mut Connection, writes: &mut [Write]) -> rusqlite::Result<Vec<Done>> {
    // IMMEDIATE: no other writer changes the head that is read below before the commit.
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

/// Returns the value of a `meta` key.
pub(crate) fn meta(conn: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    conn.prepare_cached("SELECT value FROM meta WHERE key = ?")?
        .query_row([key], |row| row.get(0))
        .optional()
}

/// Returns the values whose key begins with `prefix`, by key.
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
