//! Verification of the audit: which record was changed, removed, moved or inserted, and whether its end still exists.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use outrigger_protocol::audit::AuditKind;
use rusqlite::{Connection, OptionalExtension, Result};

use super::chain::Entry;
use super::rate_limit::NOT_LISTED;
use super::retention::REMOVED;
use super::seal::{SEAL_LOST, Seal, SealPlace, as_hash, seal_file, seals};
use crate::chain::{GENESIS, Hash, Head};

/// Maximum number of listed faults.
const MAX_FAULTS: usize = 100;
/// Maximum distance from its position at which a record is looked for.
const NEAR: i64 = 64;

/// A fault of the audit, by number of the record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AuditFault {
    /// The record's fields do not match its hash.
    Changed(i64),
    /// The record was changed together with its hash: the next one has another previous hash.
    Replaced(i64),
    /// Records `from` to `to` are missing.
    Removed(i64, i64),
    /// The record was written as number `was` and is at another position.
    Moved {
        /// Where it stands.
        seq: i64,
        /// Its original number.
        was: i64,
    },
    /// The record was not written here: another one has this number.
    Inserted(i64),
    /// The sealed records from `from` to `to` are missing: the end was cut off.
    CutOff(i64, i64),
    /// The record differs from the sealed one: it, or one before it (back to the previous seal), was rewritten with all
    /// later hashes.
    Rewritten(i64),
    /// The seal after this record was not made with the key.
    Seal(i64),
    /// The log's record of this number is missing or differs from the one that was sealed with the audit.
    Log(i64),
    /// The file with the last seal is missing or unreadable: the end is not verified.
    SealLost,
    /// This record reports that the file was missing when a program started to write.
    SealWasLost(i64),
}

impl std::fmt::Display for AuditFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Changed(seq) => write!(f, "record {seq} was changed"),
            Self::Replaced(seq) => write!(f, "record {seq} was replaced, with a hash of its own"),
            Self::Removed(from, to) if from == to => write!(f, "record {from} was removed"),
            Self::Removed(from, to) => write!(f, "records {from} to {to} were removed"),
            Self::Moved { seq, was } => {
                write!(f, "record {seq} was moved: it was written as record {was}")
            }
            Self::Inserted(seq) => write!(f, "record {seq} was put in"),
            Self::CutOff(from, to) => {
                write!(
                    f,
                    "the end was cut off: records {from} to {to} were there once"
                )
            }
            Self::Rewritten(seq) => write!(
                f,
                "record {seq} is not the one that was sealed: it or one before it was rewritten"
            ),
            Self::Seal(seq) => write!(f, "the seal behind record {seq} was not made with the key"),
            Self::Log(seq) => write!(
                f,
                "record {seq} of the session log is not the one that was sealed with the audit"
            ),
            Self::SealLost => f.write_str(
                "the file with the last seal (`-audit-seal` next to the store) is missing or unreadable; the end may have been cut off",
            ),
            Self::SealWasLost(seq) => write!(
                f,
                "the file with the last seal was gone when record {seq} was written: what was there before it may have been cut off"
            ),
        }
    }
}

/// The result of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditReport {
    /// Records that were read.
    pub rows: u64,
    /// Number of the first record that must exist; older ones were removed by the retention.
    pub first: i64,
    /// Number of records that the retention removed; the cut is sealed.
    pub removed: u64,
    /// Content of the last record of a removal: how many were removed at once, and their sources.
    pub last_removal: Option<String>,
    /// Number of unlisted records, because one source caused too many within a minute.
    pub unlisted: u64,
    /// The end.
    pub head: Head,
    /// Number of valid seals.
    pub seals: u64,
    /// Number of records after the last seal: they are chained, but nothing proves that none is missing.
    pub unsealed: u64,
    /// The faults; at most 100.
    pub faults: Vec<AuditFault>,
}

impl AuditReport {
    /// Returns whether there are no faults.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }
}

/// A row as far as the verification needs it.
struct Link {
    seq: i64,
    /// The number that its hash was computed with; `None` if no number nearby matches.
    was: Option<i64>,
    prev: Hash,
    hash: Hash,
}

/// Verifies the whole audit. `key` is the public half of the key that seals must be made with; without one (no seal was
/// ever made here) seals in the file count as forged.
pub(crate) fn verify(conn: &Connection, path: &Path, key: Option<&[u8]>) -> Result<AuditReport> {
    let mut faults = BTreeSet::new();
    // The file first: what it seals was committed before, so it is visible to all later reads. A reader's snapshot begins
    // with its first statement.
    let beside = seal_file(path);
    // A key always has a file: both are created at once.
    if key.is_some() && beside.is_none() {
        faults.insert(AuditFault::SealLost);
    }
    let inside = seals(conn)?
        .into_iter()
        .map(|seal| (seal, SealPlace::Store));
    let beside = beside.map(|seal| (seal, SealPlace::Beside));
    let good: Vec<Seal> = inside
        .chain(beside)
        .filter(|(seal, place)| {
            let good = key.is_some_and(|key| seal.is_signed_by(key, *place));
            if !good {
                faults.insert(AuditFault::Seal(seal.seq));
            }
            good
        })
        .map(|(seal, _)| seal)
        .collect();
    let start = good
        .iter()
        .filter(|seal| seal.cut)
        .max_by_key(|seal| seal.seq)
        .map_or(
            Head {
                seq: 0,
                hash: GENESIS,
            },
            |seal| Head {
                seq: seal.seq,
                hash: as_hash(&seal.hash),
            },
        );
    let links = read(conn)?;
    let last = check_numbers(&links, start, &mut faults);
    check_links(&links, start, &mut faults);
    let sealed = check_seals(&links, &good, start, last, &mut faults);
    check_log(conn, &good, &mut faults)?;
    faults.extend(lost(conn)?.into_iter().map(AuditFault::SealWasLost));
    let head = links.last().map_or(start, |link| Head {
        seq: link.seq,
        hash: link.hash,
    });
    Ok(AuditReport {
        rows: links.len() as u64,
        first: start.seq + 1,
        removed: start.seq.unsigned_abs(),
        last_removal: last_removal(conn)?,
        unlisted: unlisted(conn)?,
        head,
        seals: good.len() as u64,
        unsealed: links.iter().filter(|link| link.seq > sealed).count() as u64,
        faults: faults.into_iter().take(MAX_FAULTS).collect(),
    })
}

/// Returns records that report a missing file.
fn lost(conn: &Connection) -> Result<Vec<i64>> {
    conn.prepare(
        "SELECT seq FROM audit WHERE kind = ? AND json_valid(body) AND json_extract(body, '$.decision') = ?",
    )?
    .query_map([AuditKind::Retention.name(), SEAL_LOST], |row| row.get(0))?
    .collect()
}

fn last_removal(conn: &Connection) -> Result<Option<String>> {
    conn.query_row(
        "SELECT json_extract(body, '$.detail') FROM audit WHERE kind = ? AND json_valid(body)
            AND json_extract(body, '$.decision') = ? ORDER BY seq DESC LIMIT 1",
        [AuditKind::Retention.name(), REMOVED],
        |row| row.get(0),
    )
    .optional()
    .map(Option::flatten)
}

/// Returns the sum of unlisted records; the counts are at the start of the subjects.
fn unlisted(conn: &Connection) -> Result<u64> {
    // A corrupted text may not be JSON, or may contain any count.
    let mut statement = conn.prepare(
        "SELECT CAST(json_extract(body, '$.subject') AS INTEGER) FROM audit
            WHERE json_valid(body) AND json_extract(body, '$.decision') = ?",
    )?;
    let mut rows = statement.query([NOT_LISTED])?;
    let mut all = 0_u64;
    while let Some(row) = rows.next()? {
        let count: Option<i64> = row.get(0)?;
        all = all.saturating_add(count.unwrap_or_default().unsigned_abs());
    }
    Ok(all)
}

fn read(conn: &Connection) -> Result<Vec<Link>> {
    let mut statement =
        conn.prepare("SELECT seq, at, kind, body, prev_hash, hash FROM audit ORDER BY seq")?;
    let mut rows = statement.query([])?;
    let mut links = Vec::new();
    let mut searched = 0;
    while let Some(row) = rows.next()? {
        let seq: i64 = row.get(0)?;
        let entry = Entry {
            at: row.get(1)?,
            kind: row.get(2)?,
            body: row.get(3)?,
        };
        let prev = row.get_ref(4)?.as_blob()?.to_vec();
        let hash = row.get_ref(5)?.as_blob()?.to_vec();
        let gives = |number: &i64| entry.hash(*number, &prev).as_slice() == hash;
        let was = if gives(&seq) {
            Some(seq)
        } else if searched < 10 * MAX_FAULTS {
            searched += 1;
            (1..=NEAR)
                .flat_map(|d| [seq - d, seq + d])
                .find(|number| *number > 0 && gives(number))
        } else {
            None
        };
        links.push(Link {
            seq,
            was,
            prev: as_hash(&prev),
            hash: as_hash(&hash),
        });
    }
    Ok(links)
}

/// Checks that every number from the start to the last one belongs to one record. Returns the last number.
fn check_numbers(links: &[Link], start: Head, faults: &mut BTreeSet<AuditFault>) -> i64 {
    // Records by the number that they claim.
    let mut owners: BTreeMap<i64, Vec<&Link>> = BTreeMap::new();
    for link in links {
        match link.was {
            Some(was) => {
                if was != link.seq {
                    faults.insert(AuditFault::Moved { seq: link.seq, was });
                }
                owners.entry(was).or_default().push(link);
            }
            None => {
                faults.insert(AuditFault::Changed(link.seq));
                // A record's position is its number, unless that number has an owner.
                owners.entry(link.seq).or_default();
            }
        }
        if link.was.unwrap_or(link.seq) <= start.seq {
            faults.insert(AuditFault::Inserted(link.seq));
        }
    }
    for owners in owners.values().filter(|owners| owners.len() > 1) {
        // An inserted record moved the original up by a position; otherwise the copy is the one at another position.
        let shifted = owners.iter().any(|link| link.was == Some(link.seq - 1));
        let put_in = |link: &&&Link| (link.was == Some(link.seq)) == shifted;
        faults.extend(
            owners
                .iter()
                .filter(put_in)
                .map(|l| AuditFault::Inserted(l.seq)),
        );
    }
    let last = owners.keys().last().copied().unwrap_or(start.seq);
    let mut next = start.seq + 1;
    for number in owners.keys().copied().filter(|n| *n > start.seq) {
        if number > next {
            faults.insert(AuditFault::Removed(next, number - 1));
        }
        next = number + 1;
    }
    last
}

/// Checks that every record has the hash of the previous one.
fn check_links(links: &[Link], start: Head, faults: &mut BTreeSet<AuditFault>) {
    let by_number: BTreeMap<i64, &Link> = links
        .iter()
        .map(|link| (link.was.unwrap_or(link.seq), link))
        .collect();
    for (number, link) in &by_number {
        let before = if *number == start.seq + 1 {
            Some((start.hash, None))
        } else {
            by_number
                .get(&(number - 1))
                .map(|before| (before.hash, Some(before.seq)))
        };
        let Some((hash, owner)) = before else {
            continue;
        };
        if link.prev == hash || link.was.is_none() {
            continue;
        }
        let fault = AuditFault::Replaced(owner.unwrap_or(link.seq));
        let reported = owner.is_some_and(|seq| {
            faults.contains(&AuditFault::Changed(seq))
                || faults.contains(&AuditFault::Inserted(seq))
        });
        if !reported {
            faults.insert(fault);
        }
    }
}

/// Checks that sealed records exist. Returns the last existing number.
fn check_seals(
    links: &[Link],
    seals: &[Seal],
    start: Head,
    last: i64,
    faults: &mut BTreeSet<AuditFault>,
) -> i64 {
    // By original number, so that a moved row is reported as moved.
    let by_number: BTreeMap<i64, &Link> = links
        .iter()
        .rev()
        .map(|link| (link.was.unwrap_or(link.seq), link))
        .collect();
    let mut sealed = start.seq;
    let mut end = last;
    for seal in seals.iter().filter(|seal| seal.seq > start.seq) {
        let found = by_number.get(&seal.seq);
        match found {
            _ if seal.seq > last => end = end.max(seal.seq),
            Some(link) if link.hash.as_slice() == seal.hash => sealed = sealed.max(seal.seq),
            Some(_) => {
                faults.insert(AuditFault::Rewritten(seal.seq));
            }
            // Reported as removed.
            None => {}
        }
    }
    if end > last {
        faults.insert(AuditFault::CutOff(last + 1, end));
    }
    sealed
}

fn check_log(conn: &Connection, seals: &[Seal], faults: &mut BTreeSet<AuditFault>) -> Result<()> {
    let mut find = conn.prepare("SELECT hash FROM log WHERE seq = ?")?;
    for seal in seals.iter().filter(|seal| seal.log_seq > 0) {
        let mut rows = find.query([seal.log_seq])?;
        let same = match rows.next()? {
            Some(row) => row.get_ref(0)?.as_blob()? == seal.log_hash,
            None => false,
        };
        if !same {
            faults.insert(AuditFault::Log(seal.log_seq));
        }
    }
    Ok(())
}
