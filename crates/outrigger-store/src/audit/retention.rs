//! Retention of the audit.

use outrigger_protocol::audit::{AuditKind, AuditRecord};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::chain::{self, Entry};
use super::redact::Redactor;
use super::seal::{Sealer, as_hash};
use crate::chain::Head;
use crate::error::StoreError;

/// Maximum number of records removed at once, so that no caller waits long for the writer.
const AT_ONCE: i64 = 5_000;
/// Number of sources of removed records that are named.
const NAMED: usize = 8;
/// Decision of a record about a removal.
pub(crate) const REMOVED: &str = "removed";
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Retention of the audit. Records over either limit are removed, oldest first, with a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Maximum number of records; 0 for any number.
    pub records: u64,
    /// Maximum age in days, relative to the newest record; 0 for any time.
    pub days: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            records: 200_000,
            days: 90,
        }
    }
}

/// Removes records over the retention: a sealed cut marks the start of the rest, and a record reports the removal. Returns
/// the number of removed records.
pub(crate) fn prune(
    conn: &mut Connection,
    sealer: &mut Sealer,
    keep: Retention,
    path: &std::path::Path,
) -> Result<u64, StoreError> {
    let sql = |e| StoreError::sqlite(path, "remove old records of the audit in", e);
    let tx = conn
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(sql)?;
    let Some(Removal {
        cut,
        removed,
        newest,
    }) = place(&tx, keep).map_err(sql)?
    else {
        return Ok(0);
    };
    let sources = sources(&tx, cut.seq).map_err(sql)?;
    sealer.seal_cut(&tx, cut)?;
    remove(&tx, cut.seq).map_err(sql)?;
    let mut head = chain::head(&tx).map_err(sql)?;
    let at = newest.unsigned_abs();
    let record = AuditRecord {
        detail: Some(format!(
            "{removed} records up to number {}: {sources}",
            cut.seq
        )),
        ..AuditRecord::new(AuditKind::Retention, at, REMOVED)
    };
    let entry = Entry::new(at, record, &Redactor::default(), super::run())?;
    chain::append(&tx, &mut head, &entry).map_err(sql)?;
    sealer.seal(&tx)?;
    tx.commit().map_err(sql)?;
    Ok(removed.unsigned_abs())
}

/// A pending removal.
struct Removal {
    /// Its last record.
    cut: Head,
    /// Number of records up to it.
    removed: i64,
    /// Time of the newest record.
    newest: i64,
}

/// Returns the records over the retention. Called with every seal, so it reads only the ends of the audit: counting
/// millions of records between them would take longer than all writes.
fn place(conn: &Connection, keep: Retention) -> rusqlite::Result<Option<Removal>> {
    let ends = end(conn, "ASC")?.zip(end(conn, "DESC")?);
    let Some(((first, oldest), (last, newest))) = ends else {
        return Ok(None);
    };
    let most = i64::try_from(keep.records).unwrap_or(i64::MAX);
    // Wait until a tenth over the limit, or each new record would remove one.
    let over = if most > 0 && last - first + 1 > most + most / 10 {
        Some(last - most)
    } else {
        None
    };
    let days = i64::try_from(keep.days).unwrap_or(i64::MAX);
    let before = newest.saturating_sub(days.saturating_mul(DAY_MS));
    let old = if days > 0 && oldest < before {
        // Numbers and times increase together, so old records form a prefix.
        conn.query_row(
            "SELECT max(seq) FROM (SELECT seq, at FROM audit ORDER BY seq LIMIT ?) WHERE at < ?",
            params![AT_ONCE, before],
            |row| row.get::<_, Option<i64>>(0),
        )?
    } else {
        None
    };
    let Some(cut) = over.max(old) else {
        return Ok(None);
    };
    // The last record stays: the chain continues after it.
    let cut = cut.min(first + AT_ONCE - 1).min(last - 1);
    if cut < first {
        return Ok(None);
    }
    let hash = conn
        .query_row("SELECT hash FROM audit WHERE seq = ?", [cut], |row| {
            row.get::<_, Vec<u8>>(0)
        })
        .optional()?;
    Ok(hash.map(|hash| Removal {
        cut: Head {
            seq: cut,
            hash: as_hash(&hash),
        },
        removed: cut - first + 1,
        newest,
    }))
}

/// Returns number and time of the record at one end.
fn end(conn: &Connection, order: &str) -> rusqlite::Result<Option<(i64, i64)>> {
    conn.prepare_cached(&format!(
        "SELECT seq, at FROM audit ORDER BY seq {order} LIMIT 1"
    ))?
    .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
    .optional()
}

/// Returns the sources of the records up to the cut, most frequent first, so that one that displaced the others is
/// visible. A corrupted body has no source, and is removed like the others.
fn sources(conn: &Connection, cut: i64) -> rusqlite::Result<String> {
    let mut statement = conn.prepare(
        "SELECT kind, CASE WHEN json_valid(body) THEN json_extract(body, '$.pluginId') END AS plugin, count(*)
            FROM audit WHERE seq <= ? GROUP BY kind, plugin ORDER BY 3 DESC, 1, 2",
    )?;
    let all = statement
        .query_map([cut], |row| {
            let kind: String = row.get(0)?;
            let plugin: Option<String> = row.get(1)?;
            let count: i64 = row.get(2)?;
            let who = plugin.map(|plugin| format!(" of {plugin}"));
            Ok((format!("{kind}{}", who.unwrap_or_default()), count))
        })?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let rest: i64 = all.iter().skip(NAMED).map(|(_, count)| count).sum();
    let mut named: Vec<String> = all
        .into_iter()
        .take(NAMED)
        .map(|(who, count)| format!("{count} {who}"))
        .collect();
    if rest > 0 {
        named.push(format!("{rest} others"));
    }
    Ok(named.join(", "))
}

// The trigger prevents all other code from deleting.
fn remove(conn: &Connection, cut: i64) -> rusqlite::Result<()> {
    conn.execute_batch("DROP TRIGGER audit_delete")?;
    conn.execute("DELETE FROM audit WHERE seq <= ?", [cut])?;
    conn.execute(
        "DELETE FROM audit_seals WHERE seq < ?1 OR (seq = ?1 AND cut = 0)",
        [cut],
    )?;
    conn.execute_batch(crate::migrations::AUDIT_STAYS)
}
