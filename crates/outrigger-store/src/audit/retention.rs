//! How much of the audit is kept.

use outrigger_protocol::audit::{AuditKind, AuditRecord};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::chain::{self, Entry};
use super::redact::Redactor;
use super::seal::{Sealer, as_hash};
use crate::chain::Head;
use crate::error::StoreError;

/// Records that are removed at once, so that nobody waits long for the writer.
const AT_ONCE: i64 = 5_000;
/// Sources of removed records that are named.
const NAMED: usize = 8;
/// What a record decides that tells of a removal.
pub(crate) const REMOVED: &str = "removed";
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// How much of the audit is kept. What is over either is removed, the oldest first, some while later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// So many records; 0 for any number.
    pub records: u64,
    /// So many days, counted back from the newest record; 0 for any time.
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

/// Removes what is over the retention: a sealed cut says where the rest begins, and a record says that it was done.
/// Returns the number of records that were removed.
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

/// What is to be removed.
struct Removal {
    /// The last of it.
    cut: Head,
    /// How many there are up to it.
    removed: i64,
    /// When the newest record was made.
    newest: i64,
}

/// What is over the retention. Asked with every seal, so it looks at the ends of the audit only: at the tenth of a million
/// records between them it would take longer than all that is written.
fn place(conn: &Connection, keep: Retention) -> rusqlite::Result<Option<Removal>> {
    let ends = end(conn, "ASC")?.zip(end(conn, "DESC")?);
    let Some(((first, oldest), (last, newest))) = ends else {
        return Ok(None);
    };
    let most = i64::try_from(keep.records).unwrap_or(i64::MAX);
    // A tenth over the limit before anything is done, or one record would be removed for each that comes.
    let over = if most > 0 && last - first + 1 > most + most / 10 {
        Some(last - most)
    } else {
        None
    };
    let days = i64::try_from(keep.days).unwrap_or(i64::MAX);
    let before = newest.saturating_sub(days.saturating_mul(DAY_MS));
    let old = if days > 0 && oldest < before {
        // Numbers and times rise together, so what is old is a run at the beginning.
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
    // The last record stays: the chain goes on after it.
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

/// Number and time of the record at one end.
fn end(conn: &Connection, order: &str) -> rusqlite::Result<Option<(i64, i64)>> {
    conn.prepare_cached(&format!(
        "SELECT seq, at FROM audit ORDER BY seq {order} LIMIT 1"
    ))?
    .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
    .optional()
}

/// Whose the records up to the cut are, those with the most first: one that pushed the others out is seen. A body that
/// somebody has made unreadable is nobody's, and is removed like the others.
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

// The trigger keeps all other code from deleting.
fn remove(conn: &Connection, cut: i64) -> rusqlite::Result<()> {
    conn.execute_batch("DROP TRIGGER audit_delete")?;
    conn.execute("DELETE FROM audit WHERE seq <= ?", [cut])?;
    conn.execute(
        "DELETE FROM audit_seals WHERE seq < ?1 OR (seq = ?1 AND cut = 0)",
        [cut],
    )?;
    conn.execute_batch(crate::schema::AUDIT_STAYS)
}
