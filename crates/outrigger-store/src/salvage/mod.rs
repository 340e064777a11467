//! Salvage: copies the readable records of a damaged file to a new one.
//!
//! The damaged file is read page by page and never written. The hash in each row distinguishes rows from garbage, and
//! newer copies from old ones: data with a matching hash is a row of the log as it was written, wherever in the file it
//! is found. The projections are not read but rebuilt.

mod pages;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use outrigger_protocol::log::LogRecord;
use rusqlite::{Connection, TransactionBehavior};

use crate::chain::{self, Head, Row};
use crate::error::StoreError;
use crate::open::{self, Lock, OpenOptions, beside};
use crate::project;
use pages::{Pages, Value, Version};

/// The result of a salvage. `Display` formats it in a few lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// The damaged file, which is unchanged.
    pub from: PathBuf,
    /// The new file.
    pub into: PathBuf,
    /// Number of records in the new file.
    pub rows: u64,
    /// Number of sessions in the new file.
    pub sessions: u64,
    /// Number of messages in the new file.
    pub messages: u64,
    /// Ranges of lost records, by number. At the end, those that an index knows of.
    pub lost: Vec<(i64, i64)>,
    /// Records that could be read but do not match their hash: their contents may be wrong. They are in the new file.
    pub altered: Vec<i64>,
    /// Bytes missing at the end of the damaged file, as far as its header shows; they contained the newest records.
    pub missing_bytes: u64,
}

impl std::fmt::Display for SalvageReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "{} records ({} sessions, {} messages) were copied from {} to {}.",
            self.rows,
            self.sessions,
            self.messages,
            self.from.display(),
            self.into.display()
        )?;
        if self.lost.is_empty() {
            writeln!(f, "No record is known to be missing.")?;
        } else {
            let count: i64 = self.lost.iter().map(|(a, b)| b - a + 1).sum();
            write!(f, "{count} records are lost:")?;
            for (a, b) in &self.lost {
                if a == b {
                    write!(f, " {a}")?;
                } else {
                    write!(f, " {a}-{b}")?;
                }
            }
            writeln!(f, ".")?;
        }
        if self.missing_bytes > 0 {
            writeln!(
                f,
                "The file is {} bytes shorter than it should be: the newest records may be missing.",
                self.missing_bytes
            )?;
        }
        if !self.altered.is_empty() {
            writeln!(
                f,
                "Records that were read but may be wrong: {:?}.",
                self.altered
            )?;
        }
        write!(
            f,
            "Permissions that were granted for good are not copied; the damaged file was not changed."
        )
    }
}

/// A row and whether it matches its hash.
struct CheckedRow {
    row: Row,
    sound: bool,
}

/// Location of a row.
#[derive(Clone, Copy)]
struct RowLocation {
    page: u32,
    version: Version,
    index: usize,
    sound: bool,
}

/// Copies every record that can be read from the damaged store at `path` into a new store at `into`. Records keep their
/// numbers; the hash chain is made anew, so the new store is valid. Values of `meta` are not copied: nothing tells a
/// value that holds from an old one, and permissions are among them.
///
/// # Errors
/// [`StoreError::Exists`], [`StoreError::Busy`] when the damaged store is in use, [`StoreError::NothingLeft`], or what
/// kept the files from being read or written. No new file is left behind then.
pub fn salvage(path: &Path, into: &Path) -> Result<SalvageReport, StoreError> {
    if into.exists() || beside(into, "-wal").exists() {
        return Err(StoreError::Exists {
            path: into.to_path_buf(),
        });
    }
    std::fs::metadata(path).map_err(|e| StoreError::io(path, "read", e))?;
    // Before the first descriptor: closing one would release the locks of a store that is open in this process.
    let _lock = Lock::exclusive(path)?;
    let pages = Pages::open(path).map_err(|e| StoreError::io(path, "read", e))?;
    let (places, last) = find(&pages);
    if places.is_empty() {
        return Err(StoreError::NothingLeft {
            path: path.to_path_buf(),
        });
    }
    let result = write(&pages, &places, last, path, into);
    if result.is_err() {
        // This file is ours and incomplete.
        for suffix in ["", "-wal", "-shm", "-lock"] {
            let _ = std::fs::remove_file(beside(into, suffix));
        }
    }
    result
}

/// Searches every page for rows of the log. Only their locations are kept: a log may be larger than memory. The second
/// number is that of the last record that an index knows of, which may be lost itself.
fn find(pages: &Pages) -> (BTreeMap<i64, RowLocation>, i64) {
    let mut places: BTreeMap<i64, RowLocation> = BTreeMap::new();
    let mut last = 0;
    for page in pages.numbers() {
        for &version in pages.versions(page) {
            let known = pages.index_cells(page, version);
            last = known
                .iter()
                .filter_map(|payload| indexed(payload))
                .fold(last, i64::max);
            for (index, cell) in pages.cells(page, version).iter().enumerate() {
                if cell.rowid < 1 || places.get(&cell.rowid).is_some_and(|known| known.sound) {
                    continue;
                }
                if let Some(CheckedRow { sound, .. }) = log_row(&cell.payload) {
                    let place = RowLocation {
                        page,
                        version,
                        index,
                        sound,
                    };
                    if sound {
                        places.insert(cell.rowid, place);
                    } else {
                        places.entry(cell.rowid).or_insert(place);
                    }
                }
            }
        }
    }
    (places, last)
}

/// Returns the record's number in an entry of an index of the log (session or turn, kind, number), if these bytes are
/// one.
fn indexed(payload: &[u8]) -> Option<i64> {
    match pages::record(payload)?.as_slice() {
        [
            Value::Text(_),
            Value::Text("event" | "turn_step" | "hook" | "tool" | "client"),
            Value::Int(seq),
        ] => Some(*seq),
        _ => None,
    }
}

/// Decodes a row of the log, if these bytes are one.
fn log_row(payload: &[u8]) -> Option<CheckedRow> {
    let values = pages::record(payload)?;
    let [
        Value::Null,
        Value::Int(at),
        Value::Text(kind),
        session,
        turn,
        Value::Text(body),
        Value::Blob(prev),
        Value::Blob(hash),
    ] = values.as_slice()
    else {
        return None;
    };
    let optional = |value: &Value<'_>| match value {
        Value::Null => Some(None),
        Value::Text(text) => Some(Some((*text).to_owned())),
        _ => None,
    };
    let row = Row {
        at: *at,
        kind: (*kind).to_owned(),
        session: optional(session)?,
        turn: optional(turn)?,
        body: (*body).to_owned(),
    };
    let sound = row.hash(prev) == *hash;
    // Without a matching hash a row must at least be a record that can be read later.
    if !sound && !serde_json::from_str::<LogRecord>(body).is_ok_and(|record| record.kind() == *kind)
    {
        return None;
    }
    Some(CheckedRow { row, sound })
}

fn write(
    pages: &Pages,
    places: &BTreeMap<i64, RowLocation>,
    last: i64,
    path: &Path,
    into: &Path,
) -> Result<SalvageReport, StoreError> {
    const ROWS_IN_A_TRANSACTION: usize = 1000;
    let sql = |e| StoreError::sqlite(into, "write what was salvaged", e);
    let mut opened = open::open(into, &OpenOptions::default())?;
    let mut report = SalvageReport {
        from: path.to_path_buf(),
        into: into.to_path_buf(),
        missing_bytes: pages
            .expected_len
            .unwrap_or(0)
            .saturating_sub(pages.main_len()),
        ..SalvageReport::default()
    };
    let mut head = Head {
        seq: 0,
        hash: chain::GENESIS,
    };
    let mut places = places.iter().peekable();
    while places.peek().is_some() {
        let tx = opened
            .conn
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(sql)?;
        for (&seq, place) in places.by_ref().take(ROWS_IN_A_TRANSACTION) {
            let cells = pages.cells(place.page, place.version);
            let Some(found) = cells
                .get(place.index)
                .and_then(|cell| log_row(&cell.payload))
            else {
                // The disk returned it the first time and fails now.
                continue;
            };
            if seq > head.seq + 1 {
                report.lost.push((head.seq + 1, seq - 1));
            }
            if !found.sound {
                report.altered.push(seq);
            }
            chain::append(&tx, &mut head, seq, &found.row).map_err(sql)?;
            project::apply(&tx, seq, &found.row).map_err(sql)?;
            report.rows += 1;
        }
        tx.commit().map_err(sql)?;
    }
    if last > head.seq {
        report.lost.push((head.seq + 1, last));
    }
    report.sessions = count(&opened.conn, "sessions").map_err(sql)?;
    report.messages = count(&opened.conn, "messages").map_err(sql)?;
    Ok(report)
}

fn count(conn: &Connection, table: &str) -> rusqlite::Result<u64> {
    let count = conn.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| {
        row.get::<_, i64>(0)
    })?;
    Ok(count.unsigned_abs())
}
