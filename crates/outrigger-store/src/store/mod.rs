//! The store's handle.

mod audit;
mod usage;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_protocol::Millis;
use outrigger_protocol::audit::AuditRecord;
use outrigger_protocol::hook::HookRecord;
use outrigger_protocol::id::{MessageId, SessionId, TurnId};
use outrigger_protocol::log::{LogRecord, ToolRecord, TurnStep};
use outrigger_protocol::message::MessageWithParts;
use outrigger_protocol::session::{Session, Todo};
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::oneshot;

use crate::audit::{Bound, Entry, Redactor};
use crate::chain::{self, ChainReport, Hash, Head, Row};
use crate::error::StoreError;
use crate::open::{self, OpenOptions, OpenReport};
use crate::project;
use crate::queue::{Job, Write};
use crate::read::{
    PluginUse, Readers, RecordQuery, Scope, SessionFilter, StoredRecord, TurnInfo, Turns,
};
use crate::writer::{self, Writer};

/// An open store. Clones share it; when the last one is dropped, queued jobs are written and the file is closed.
///
/// Reading functions are synchronous and short, unless stated otherwise. They see what was committed before they started:
/// records passed to [`Store::append_lazily`] only after the next commit or [`Store::flush`].
#[derive(Clone)]
pub struct Store {
    inner: Arc<StoreState>,
}

struct StoreState {
    path: PathBuf,
    readers: Readers,
    writer: Writer,
    redactor: Redactor,
    bound: Bound,
}

impl Drop for StoreState {
    fn drop(&mut self) {
        // The writer's connection must be the last one: it cleans up the write-ahead log.
        self.readers.clear();
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("path", &self.inner.path)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store at `path`; file and folder are made if they are not there. The whole file is checked only when
    /// the last process that used it did not close it.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] (its hint names the way to what is left), [`StoreError::Newer`],
    /// [`StoreError::Foreign`], [`StoreError::Open`], [`StoreError::Busy`]. In each case the file is as it was.
    pub fn open(path: &Path) -> Result<(Self, OpenReport), StoreError> {
        Self::open_with(path, &OpenOptions::default())
    }

    /// As [`Store::open`], with options.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_with(path: &Path, options: &OpenOptions) -> Result<(Self, OpenReport), StoreError> {
        let opened = open::open(path, options)?;
        let inner = StoreState {
            path: path.to_path_buf(),
            readers: Readers::new(path, options.clone()),
            writer: Writer::start(opened.conn, path, opened.lock)?,
            redactor: Redactor::default(),
            bound: Bound::default(),
        };
        let store = Self {
            inner: Arc::new(inner),
        };
        Ok((store, opened.report))
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Appends records in one transaction, with their projections, and returns their numbers. `at` is in milliseconds
    /// since the epoch. Appends of several callers are written in the order of their calls (the first poll), often in
    /// one transaction. A future that is dropped does not take its records back.
    ///
    /// # Errors
    /// [`StoreError::Full`] and the like: then none of the records is in the file, and the next append works as soon as
    /// the cause is gone. [`StoreError::Encode`] for a record that is not JSON or a time that is too large.
    pub async fn append(
        &self,
        at: Millis,
        records: Vec<LogRecord>,
    ) -> Result<Vec<i64>, StoreError> {
        if records.is_empty() {
            return Ok(Vec::new());
        }
        let rows = encode(at, &records)?;
        let audit = self.audited(at, &records)?;
        drop(records);
        self.ask(|answer| {
            Job::Write(Write::Append {
                rows,
                audit,
                answer: Some(answer),
            })
        })
        .await
    }

    /// Appends records with the next batch, within about 50 ms, and does not wait. For records whose loss in a crash is
    /// acceptable (hook runs). If they cannot be written, the program's log and the next [`Store::flush`] report it.
    /// Requests of one plugin's client are limited like [`Store::audit_lazily`].
    pub fn append_lazily(&self, at: Millis, mut records: Vec<LogRecord>) {
        let counts = self.inner.bound.requests(at, &mut records);
        self.queue_audit(at, counts);
        if records.is_empty() {
            return;
        }
        let queued = encode(at, &records).and_then(|rows| {
            let audit = self.audited(at, &records)?;
            self.inner.writer.send(Job::Write(Write::Append {
                rows,
                audit,
                answer: None,
            }))
        });
        if let Err(error) = queued {
            tracing::warn!(records = records.len(), %error, "records that no one waits for were not queued");
        }
    }

    /// Returns when everything queued before is committed; with `sync` also on disk, so that it survives the loss of
    /// power. For the end of a turn.
    ///
    /// # Errors
    /// [`StoreError::LazyLost`] if records of [`Store::append_lazily`] could not be written since the last flush, or why
    /// the file could not be synced.
    pub async fn flush(&self, sync: bool) -> Result<(), StoreError> {
        let at = outrigger_stdx::clock::now_ms();
        self.queue_audit(at, self.inner.bound.rest(at));
        self.ask(|answer| Job::Flush { sync, answer }).await
    }

    /// Makes the projections anew from the log, in one transaction. Returns how many records were replayed.
    ///
    /// # Errors
    /// When the log cannot be read or there is no room; the projections are as before then.
    pub async fn rebuild(&self) -> Result<u64, StoreError> {
        self.work("rebuild the projections", |conn| {
            let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let count = project::rebuild(&tx)?;
            tx.commit()?;
            Ok(count)
        })
        .await
    }

    /// Sets a value that is not part of any session's history (permissions granted for a project and the like); `None`
    /// removes it. Such values are not in the log.
    ///
    /// # Errors
    /// As [`Store::append`].
    pub async fn meta_set(&self, key: &str, value: Option<&str>) -> Result<(), StoreError> {
        let value = value.map(ToOwned::to_owned);
        self.meta_update(key, move |_| value).await.map(|_| ())
    }

    /// Changes a value from what it is, in one transaction: no change of another process is lost. Returns the new value.
    /// `update` must be quick and must not panic.
    ///
    /// # Errors
    /// As [`Store::append`].
    pub async fn meta_update(
        &self,
        key: &str,
        update: impl FnOnce(Option<String>) -> Option<String> + Send + 'static,
    ) -> Result<Option<String>, StoreError> {
        let key = key.to_owned();
        self.ask(|answer| {
            Job::Write(Write::Meta {
                key,
                update: Some(Box::new(update)),
                answer,
            })
        })
        .await
    }

    /// A value set with [`Store::meta_set`].
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn meta_get(&self, key: &str) -> Result<Option<String>, StoreError> {
        self.inner
            .readers
            .read(|r| r.sql(|conn| writer::meta(conn, key)))
    }

    /// All values whose key begins with `prefix`, by key.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn meta_list(&self, prefix: &str) -> Result<Vec<(String, String)>, StoreError> {
        self.inner
            .readers
            .read(|r| r.sql(|conn| writer::meta_list(conn, prefix)))
    }

    /// A session.
    ///
    /// # Errors
    /// When the file cannot be read, or the session has a form that this version does not know.
    pub fn session(&self, id: &SessionId) -> Result<Option<Session>, StoreError> {
        self.inner.readers.read(|r| r.session(id))
    }

    /// Sessions, the one that was used last first.
    ///
    /// # Errors
    /// As [`Store::session`].
    pub fn sessions(&self, filter: &SessionFilter) -> Result<Vec<Session>, StoreError> {
        self.inner.readers.read(|r| r.sessions(filter))
    }

    /// Sessions that the agent of this one started, the oldest first.
    ///
    /// # Errors
    /// As [`Store::session`].
    pub fn children(&self, id: &SessionId) -> Result<Vec<Session>, StoreError> {
        self.inner.readers.read(|r| r.children(id))
    }

    /// Messages of a session by identifier, each with its parts by identifier: as OpenCode orders them.
    ///
    /// # Errors
    /// As [`Store::session`].
    pub fn messages(&self, session: &SessionId) -> Result<Vec<MessageWithParts>, StoreError> {
        self.inner.readers.read(|r| r.messages(session))
    }

    /// One message with its parts.
    ///
    /// # Errors
    /// As [`Store::session`].
    pub fn message(
        &self,
        session: &SessionId,
        message: &MessageId,
    ) -> Result<Option<MessageWithParts>, StoreError> {
        self.inner.readers.read(|r| r.message(session, message))
    }

    /// The first message of a session with its parts.
    ///
    /// # Errors
    /// As [`Store::session`].
    pub fn first_message(
        &self,
        session: &SessionId,
    ) -> Result<Option<MessageWithParts>, StoreError> {
        self.inner.readers.read(|r| r.first_message(session))
    }

    /// The todo list of a session; empty when there is none.
    ///
    /// # Errors
    /// As [`Store::session`].
    pub fn todos(&self, session: &SessionId) -> Result<Vec<Todo>, StoreError> {
        self.inner.readers.read(|r| r.todos(session))
    }

    /// The steps of a turn in order: a replay of their inputs reaches the state in which the turn stood.
    ///
    /// # Errors
    /// As [`Store::session`].
    pub fn turn_steps(&self, turn: &TurnId) -> Result<Vec<TurnStep>, StoreError> {
        self.of_kind(Scope::Turn(turn), "turn_step", |record| match record {
            LogRecord::TurnStep(step) => Some(*step),
            _ => None,
        })
    }

    /// Turns that have begun and not ended, the one that stood still longest first. A turn that another living process
    /// works on is among them: see [`OpenReport::alone`].
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn open_turns(&self) -> Result<Vec<(TurnId, SessionId)>, StoreError> {
        let turns = self.inner.readers.read(|r| r.turns(Turns::Open))?;
        Ok(turns.into_iter().map(|t| (t.turn, t.session)).collect())
    }

    /// The last turns of a session, the newest first.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn last_turns(
        &self,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<TurnInfo>, StoreError> {
        self.inner
            .readers
            .read(|r| r.turns(Turns::Last(session, limit)))
    }

    /// A turn.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn turn(&self, turn: &TurnId) -> Result<Option<TurnInfo>, StoreError> {
        let turns = self.inner.readers.read(|r| r.turns(Turns::One(turn)))?;
        Ok(turns.into_iter().next())
    }

    /// Runs of hook handlers, in the order in which they were written (A1, A2).
    ///
    /// # Errors
    /// As [`Store::session`].
    pub fn hooks(&self, scope: Scope<'_>) -> Result<Vec<HookRecord>, StoreError> {
        self.of_kind(scope, "hook", |record| match record {
            LogRecord::Hook(hook) => Some(*hook),
            _ => None,
        })
    }

    /// Tool calls, in the order in which they were written (C13).
    ///
    /// # Errors
    /// As [`Store::session`].
    pub fn tools(&self, scope: Scope<'_>) -> Result<Vec<ToolRecord>, StoreError> {
        self.of_kind(scope, "tool", |record| match record {
            LogRecord::Tool(tool) => Some(*tool),
            _ => None,
        })
    }

    /// Records of the log, in order. Reading all of a large log takes long and much memory: use `after` and `limit`.
    ///
    /// # Errors
    /// As [`Store::session`].
    pub fn records(&self, query: &RecordQuery<'_>) -> Result<Vec<StoredRecord>, StoreError> {
        self.inner.readers.read(|r| r.records(query))
    }

    /// How often plugins' hooks, tools and clients did what, over the whole log (B11). Calls that were skipped do not count.
    ///
    /// # Errors
    /// As [`Store::session`].
    pub fn plugin_use(&self) -> Result<Vec<PluginUse>, StoreError> {
        self.inner.readers.read(|r| r.plugin_use())
    }

    /// The end of the log.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn head(&self) -> Result<Head, StoreError> {
        self.inner.readers.read(|r| r.sql(chain::head))
    }

    /// The hash of a record, if it is there. Someone who wrote down a [`Head`] finds out with this whether the log up to
    /// there is still the same; [`Store::verify_chain`] alone cannot see that the end was cut off.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn hash_at(&self, seq: i64) -> Result<Option<Hash>, StoreError> {
        self.inner.readers.read(|r| r.hash_at(seq))
    }

    /// Reads the whole log and checks the hash chain. Takes as long as reading the file.
    ///
    /// # Errors
    /// When the file cannot be read. A broken chain is not an error but part of the report.
    pub fn verify_chain(&self) -> Result<ChainReport, StoreError> {
        self.inner.readers.read(|r| r.sql(chain::verify))
    }

    /// Every row of the projections as text, for tests that compare two stores, or one with its rebuild.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn dump_projections(&self) -> Result<String, StoreError> {
        self.inner.readers.read(|r| r.sql(project::dump))
    }

    fn of_kind<T>(
        &self,
        scope: Scope<'_>,
        kind: &str,
        pick: impl Fn(LogRecord) -> Option<T>,
    ) -> Result<Vec<T>, StoreError> {
        let found = self.records(&RecordQuery {
            scope: Some(scope),
            kind: Some(kind),
            ..RecordQuery::default()
        })?;
        Ok(found.into_iter().filter_map(|r| pick(r.record)).collect())
    }

    /// Returns the audit records for records of the log. They are written in one transaction, so that neither exists without
    /// the other.
    fn audited(&self, at: Millis, records: &[LogRecord]) -> Result<Vec<Entry>, StoreError> {
        records
            .iter()
            .filter_map(AuditRecord::of)
            .map(|record| Entry::new(at, record, &self.inner.redactor, crate::audit::run()))
            .collect()
    }

    /// Returns the redactor of the audit; add every secret that becomes known.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.inner.redactor
    }

    pub(crate) fn readers(&self) -> &Readers {
        &self.inner.readers
    }

    pub(crate) fn bound(&self) -> &Bound {
        &self.inner.bound
    }

    pub(crate) fn writer(&self) -> &Writer {
        &self.inner.writer
    }

    pub(crate) fn read_sql<T>(
        &self,
        read: impl Fn(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.inner.readers.read(|r| r.sql(&read))
    }

    /// Queues a job and waits for its answer.
    async fn ask<T>(
        &self,
        job: impl FnOnce(crate::queue::ReplySender<T>) -> Job,
    ) -> Result<T, StoreError> {
        let (answer, asked) = oneshot::channel();
        self.inner.writer.send(job(answer))?;
        asked.await.map_err(|_| self.inner.writer.closed())?
    }

    /// Runs a function on the writer's connection.
    pub(crate) async fn work<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let path = self.inner.path.clone();
        self.ask(|answer| {
            Job::Run(Box::new(move |conn| {
                let result = work(conn).map_err(|e| StoreError::sqlite(&path, doing, e));
                let _ = answer.send(result);
            }))
        })
        .await
    }
}

/// Encodes records to rows. The caller does it, so that the writer's thread only writes, and an invalid record does not fail
/// the batch of others.
fn encode(at: Millis, records: &[LogRecord]) -> Result<Vec<Row>, StoreError> {
    records
        .iter()
        .map(|record| {
            let kind = record.kind();
            let failed = |message: String| StoreError::Encode { kind, message };
            Ok(Row {
                at: i64::try_from(at).map_err(|e| failed(e.to_string()))?,
                kind: kind.to_owned(),
                session: record.session().map(|id| id.0.clone()),
                turn: record.turn().map(|id| id.0.clone()),
                body: serde_json::to_string(record).map_err(|e| failed(e.to_string()))?,
            })
        })
        .collect()
}
