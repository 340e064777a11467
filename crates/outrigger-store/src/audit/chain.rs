//! Rows of the audit and their hashes.

use outrigger_protocol::Millis;
use outrigger_protocol::audit::AuditRecord;
use outrigger_protocol::id::PluginId;
use rusqlite::{Connection, OptionalExtension, Result, params};
use sha2::{Digest, Sha256};

use super::redact::Redactor;
use crate::chain::{GENESIS, Hash, Head};
use crate::error::StoreError;

/// Maximum size in bytes of a record's text, which others may have chosen.
const MAX_TEXT: usize = 8 * 1024;

/// A record as stored in the audit, without its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) at: i64,
    pub(crate) kind: String,
    pub(crate) body: String,
}

impl Entry {
    /// Creates the row of a record. This is the only way: every text goes through the redactor (invariant 10). A
    /// record that belongs to no turn has the run of the program as its trace.
    pub(crate) fn new(
        at: Millis,
        mut record: AuditRecord,
        redactor: &Redactor,
        run: &str,
    ) -> std::result::Result<Self, StoreError> {
        if record.trace_id.is_empty() {
            run.clone_into(&mut record.trace_id);
        }
        // A hosted plugin has two names (C8).
        if let Some((top, Some(sub))) = record.plugin_id.as_ref().map(PluginId::split) {
            record.plugin_id = Some(top);
            record.sub_plugin_id = Some(sub);
        }
        for text in [&mut record.subject, &mut record.detail]
            .into_iter()
            .flatten()
        {
            redactor.clean(text);
            text.truncate(outrigger_stdx::text::floor_char_boundary(text, MAX_TEXT));
        }
        redactor.clean(&mut record.decision);
        redactor.clean(&mut record.policy_check_result);
        let failed = |message: String| StoreError::Encode {
            kind: "audit",
            message,
        };
        Ok(Self {
            at: i64::try_from(at).map_err(|e| failed(e.to_string()))?,
            kind: record.kind.name().to_owned(),
            body: serde_json::to_string(&record).map_err(|e| failed(e.to_string()))?,
        })
    }

    /// Returns SHA-256 over the number, the previous hash and every field, each text preceded by its length, so
    /// that no two different rows have the same bytes. The number is included to distinguish a moved row from a
    /// changed one.
    pub(crate) fn hash(&self, seq: i64, prev: &[u8]) -> Hash {
        let mut sha = Sha256::new();
        for part in [
            b"outrigger-audit-1".as_slice(),
            prev,
            &seq.to_be_bytes(),
            &self.at.to_be_bytes(),
            self.kind.as_bytes(),
            self.body.as_bytes(),
        ] {
            sha.update((part.len() as u64).to_be_bytes());
            sha.update(part);
        }
        sha.finalize().into()
    }
}

/// Returns the end of the audit's chain, or its starting point.
pub(crate) fn head(conn: &Connection) -> Result<Head> {
    let last = conn
        .prepare_cached("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1")?
        .query_row([], |row| {
            Ok(Head {
                seq: row.get(0)?,
                hash: row.get(1)?,
            })
        })
        .optional()?;
    match last {
        Some(last) => Ok(last),
        None => Ok(cut(conn)?.unwrap_or(Head {
            seq: 0,
            hash: GENESIS,
        })),
    }
}

/// Returns where older records were removed, if they ever were.
pub(crate) fn cut(conn: &Connection) -> Result<Option<Head>> {
    conn.prepare_cached(
        "SELECT seq, hash FROM audit_seals WHERE cut = 1 ORDER BY seq DESC LIMIT 1",
    )?
    .query_row([], |row| {
        Ok(Head {
            seq: row.get(0)?,
            hash: row.get(1)?,
        })
    })
    .optional()
}

/// Writes one row after the head and moves the head to it.
pub(crate) fn append(conn: &Connection, head: &mut Head, entry: &Entry) -> Result<()> {
    let seq = head.seq + 1;
    let hash = entry.hash(seq, &head.hash);
    conn.prepare_cached(
        "INSERT INTO audit(seq, at, kind, body, prev_hash, hash) VALUES (?,?,?,?,?,?)",
    )?
    .execute(params![
        seq, entry.at, entry.kind, entry.body, head.hash, hash
    ])?;
    *head = Head { seq, hash };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_part_of_the_format_and_does_not_change() {
        let entry = Entry {
            at: 1,
            kind: "hook".into(),
            body: "{}".into(),
        };
        let hex = crate::hex(&entry.hash(1, &GENESIS));
        // The same value was computed independently with Python's hashlib.
        insta::assert_snapshot!(hex, @"11ab546f3b5b29b2c6b794c89dd1a51514013baedee46a7357c201ad775ede6c");
        assert_ne!(entry.hash(2, &GENESIS), entry.hash(1, &GENESIS));
    }
}
