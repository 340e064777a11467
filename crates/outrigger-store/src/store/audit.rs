//! The audit of a store: appending and querying.

use outrigger_protocol::Millis;
use outrigger_protocol::audit::AuditRecord;
use tokio::sync::oneshot;

use super::Store;
use crate::audit::{self, AuditQuery, AuditReport, Entry, Retention, StoredAudit};
use crate::error::StoreError;
use crate::queue::{Job, Write};

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

    /// Appends records to the audit with the next batch, within about 50 ms, and does not wait. The next [`Store::flush`]
    /// reports failed writes. The number of listed records of one source per minute is limited (30 refusals of a rule,
    /// 600 other records of a kind); the rest is counted, and the count is a record. A turn's hooks, intents and outcomes
    /// are always listed.
    pub fn audit_lazily(&self, at: Millis, records: Vec<AuditRecord>) {
        self.queue_audit(at, self.bound().records(at, records));
    }

    /// Queues records that passed the limit.
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
            .map(|record| Entry::new(at, record, self.redactor(), audit::run()))
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
        let rows = self.read_sql(|conn| audit::select(conn, query))?;
        rows.into_iter()
            .map(|(seq, hash, prev_hash, body)| {
                let record = serde_json::from_str(&body).map_err(|e| StoreError::Decode {
                    path: self.path().to_path_buf(),
                    what: format!("record {seq} of the audit"),
                    message: e.to_string(),
                })?;
                Ok(StoredAudit {
                    seq,
                    hash: audit::as_hash(&hash),
                    prev_hash: audit::as_hash(&prev_hash),
                    record,
                })
            })
            .collect()
    }

    /// Reads the whole audit and checks hashes, order, seals, and the log's hashes that were sealed with it. `key` is the
    /// public half of the key (see [`Store::audit_key`]); without it the one of the key file is used.
    ///
    /// # Errors
    /// When the files cannot be read. What is wrong with the audit is not an error but part of the report.
    pub fn verify_audit(&self, key: Option<&[u8]>) -> Result<AuditReport, StoreError> {
        let own = match key {
            Some(key) => Some(key.to_vec()),
            None => self.audit_key()?,
        };
        self.read_sql(|conn| audit::verify(conn, self.path(), own.as_deref()))
    }

    /// The public half of the key that seals the audit; `None` before the first seal. With a copy of it one can check
    /// later that the key was not replaced.
    ///
    /// # Errors
    /// When the key file cannot be read.
    pub fn audit_key(&self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(audit::read_key(self.path())?.as_ref().map(audit::public))
    }
}
