//! The audit (C13): a second hash chain in the same file, for who did what and who authorised it. docs/audit.md has the
//! reasons.
//!
//! It is written by the same writer, in the same transactions, as the log; it holds hashes instead of contents; its end
//! is sealed with a signature from time to time; and what is older than the retention says is removed, up to a sealed
//! cut from which the rest can still be verified.

mod chain;
mod query;
mod rate_limit;
mod redact;
mod retention;
#[cfg(test)]
mod retention_tests;
mod seal;
#[cfg(test)]
mod tamper_tests;
mod verify;

pub use query::{AuditQuery, StoredAudit};
pub use redact::Redactor;
pub use retention::Retention;
pub use verify::{AuditFault, AuditReport};

pub(crate) use chain::{Entry, append, head};
pub(crate) use rate_limit::Bound;
pub(crate) use retention::prune;
pub(crate) use seal::Sealer;

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use outrigger_protocol::Millis;
use outrigger_protocol::audit::AuditRecord;
use tokio::sync::oneshot;

use crate::error::StoreError;
use crate::queue::{Job, Write};
use crate::store::Store;

/// What belongs to no turn: the run of this process.
pub(crate) fn run() -> &'static str {
    static RUN: OnceLock<String> = OnceLock::new();
    let name = || {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        format!("run_{}_{}", std::process::id(), since.as_millis())
    };
    RUN.get_or_init(name)
}

impl Store {
    /// Appends records to the audit and waits until they are committed: for an intent, before its effect.
    ///
    /// # Errors
    /// As [`Store::append`].
    pub async fn audit(&self, at: Millis, records: Vec<AuditRecord>) -> Result<(), StoreError> {
        if records.is_empty() {
            return Ok(());
        }
        let audit = self.entries(at, records)?;
        let (answer, asked) = oneshot::channel();
        self.writer().send(Job::Write(Write::Append {
            rows: Vec::new(),
            audit,
            answer: Some(answer),
        }))?;
        asked.await.map_err(|_| self.writer().closed())?.map(|_| ())
    }

    /// Appends records to the audit with the next batch, within about 50 ms, and does not wait. What cannot be written
    /// is reported by the next [`Store::flush`]. Of one source only so many are listed within a minute (30 refusals of
    /// a rule, 600 other records of a kind); the rest is counted, and the count is a record. What a turn does, its
    /// hooks, intents and outcomes, is always listed.
    pub fn audit_lazily(&self, at: Millis, records: Vec<AuditRecord>) {
        self.queue_audit(at, self.bound().records(at, records));
    }

    /// Queues records that have been through the bound.
    pub(crate) fn queue_audit(&self, at: Millis, records: Vec<AuditRecord>) {
        let count = records.len();
        let queued = self.entries(at, records).and_then(|audit| {
            if audit.is_empty() {
                return Ok(());
            }
            self.writer().send(Job::Write(Write::Append {
                rows: Vec::new(),
                audit,
                answer: None,
            }))
        });
        if let Err(error) = queued {
            tracing::warn!(records = count, %error, "records of the audit were not queued");
        }
    }

    fn entries(&self, at: Millis, records: Vec<AuditRecord>) -> Result<Vec<Entry>, StoreError> {
        records
            .into_iter()
            .map(|record| Entry::new(at, record, self.redactor(), run()))
            .collect()
    }

    /// Sets how much of the audit is kept from now on.
    ///
    /// # Errors
    /// [`StoreError::Closed`].
    pub fn keep_audit(&self, retention: Retention) -> Result<(), StoreError> {
        self.writer().send(Job::Keep(retention))
    }

    /// Records of the audit, in order.
    ///
    /// # Errors
    /// When the file cannot be read, or a record has a form that this version does not know.
    pub fn audit_records(&self, query: &AuditQuery) -> Result<Vec<StoredAudit>, StoreError> {
        let rows = self.read_sql(|conn| query::select(conn, query))?;
        rows.into_iter()
            .map(|(seq, hash, prev_hash, body)| {
                let record = serde_json::from_str(&body).map_err(|e| StoreError::Decode {
                    path: self.path().to_path_buf(),
                    what: format!("record {seq} of the audit"),
                    message: e.to_string(),
                })?;
                Ok(StoredAudit {
                    seq,
                    hash: seal::as_hash(&hash),
                    prev_hash: seal::as_hash(&prev_hash),
                    record,
                })
            })
            .collect()
    }

    /// Reads the whole audit and checks hashes, order, seals, and the log's hashes that were sealed with it. `key` is the
    /// public half of the key (see [`Store::audit_key`]); without it the one of the key file is used.
    ///
    /// # Errors
    /// When the files cannot be read. What is wrong with the audit is no error but part of the report.
    pub fn verify_audit(&self, key: Option<&[u8]>) -> Result<AuditReport, StoreError> {
        let own = match key {
            Some(key) => Some(key.to_vec()),
            None => self.audit_key()?,
        };
        self.read_sql(|conn| verify::verify(conn, self.path(), own.as_deref()))
    }

    /// The public half of the key that seals the audit; `None` before the first seal. With a copy of it one can check
    /// later that the key was not replaced.
    ///
    /// # Errors
    /// When the key file cannot be read.
    pub fn audit_key(&self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(seal::read_key(self.path())?.as_ref().map(seal::public))
    }
}
