//! The hash chain over the log: each row has the hash of the previous row and its own.

use outrigger_protocol::log::{LogRow, frame};
use rusqlite::{Connection, OptionalExtension, Result, params};
use sha2::{Digest, Sha256};

/// SHA-256.
pub type Hash = [u8; 32];

/// Hash before the first row.
pub(crate) const GENESIS: Hash = [0; 32];

/// A record of the log, without its position in the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) at: i64,
    pub(crate) kind: String,
    pub(crate) session: Option<String>,
    pub(crate) turn: Option<String>,
    pub(crate) body: String,
}

impl Row {
    /// Returns SHA-256 over [`frame`] of the previous hash and the row.
    pub(crate) fn hash(&self, prev: &[u8]) -> Hash {
        let row = LogRow {
            at: self.at,
            kind: &self.kind,
            session: self.session.as_deref(),
            turn: self.turn.as_deref(),
            body: &self.body,
        };
        let mut sha = Sha256::new();
        frame(prev, &row, &mut |bytes| sha.update(bytes));
        sha.finalize().into()
    }
}

/// The end of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Number of the last row; 0 for an empty log.
    pub seq: i64,
    /// Its hash.
    pub hash: Hash,
}

/// Reads the end of the chain. A writer calls this inside its `BEGIN IMMEDIATE`, since another process may have written.
pub(crate) fn head(conn: &Connection) -> Result<Head> {
    let found = conn
        .prepare_cached("SELECT seq, hash FROM log ORDER BY seq DESC LIMIT 1")?
        .query_row([], |row| {
            Ok(Head {
                seq: row.get(0)?,
                hash: row.get(1)?,
            })
        })
        .optional()?;
    Ok(found.unwrap_or(Head {
        seq: 0,
        hash: GENESIS,
    }))
}

/// Writes one row with the given number and moves the head to it.
pub(crate) fn append(conn: &Connection, head: &mut Head, seq: i64, row: &Row) -> Result<()> {
    let hash = row.hash(&head.hash);
    conn.prepare_cached(
        "INSERT INTO log(seq, at, kind, session, turn, body, prev_hash, hash) VALUES (?,?,?,?,?,?,?,?)",
    )?
    .execute(params![
        seq,
        row.at,
        row.kind,
        row.session,
        row.turn,
        row.body,
        head.hash,
        hash
    ])?;
    *head = Head { seq, hash };
    Ok(())
}

/// A fault of a row of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainFault {
    /// The row's fields do not match its hash: the row was changed.
    Changed,
    /// The row does not follow the previous one: a row was changed with its hash, removed or inserted.
    Unlinked,
}

/// The result of checking the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainReport {
    /// Number of rows read.
    pub rows: u64,
    /// The end of the chain; an auditor who recorded an earlier head can find it again with [`crate::Store::hash_at`].
    pub head: Head,
    /// Faulty rows by number; at most the first 100.
    pub faults: Vec<(i64, ChainFault)>,
}

impl ChainReport {
    /// Returns whether there are no faults.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }
}

const MAX_FAULTS: usize = 100;

/// Reads the whole log and checks every row against its hash and the previous row.
pub(crate) fn verify(conn: &Connection) -> Result<ChainReport> {
    let mut statement = conn.prepare(
        "SELECT seq, at, kind, session, turn, body, prev_hash, hash FROM log ORDER BY seq",
    )?;
    let mut rows = statement.query([])?;
    let mut report = ChainReport {
        rows: 0,
        head: Head {
            seq: 0,
            hash: GENESIS,
        },
        faults: Vec::new(),
    };
    while let Some(found) = rows.next()? {
        let seq: i64 = found.get(0)?;
        let row = Row {
            at: found.get(1)?,
            kind: found.get(2)?,
            session: found.get(3)?,
            turn: found.get(4)?,
            body: found.get(5)?,
        };
        let prev = found.get_ref(6)?.as_blob()?;
        let hash = found.get_ref(7)?.as_blob()?;
        let fault = if row.hash(prev) != hash {
            Some(ChainFault::Changed)
        } else if prev != report.head.hash {
            Some(ChainFault::Unlinked)
        } else {
            None
        };
        if let Some(fault) = fault
            && report.faults.len() < MAX_FAULTS
        {
            report.faults.push((seq, fault));
        }
        report.rows += 1;
        report.head = Head {
            seq,
            hash: hash.try_into().unwrap_or(GENESIS),
        };
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(kind: &str, session: Option<&str>, turn: Option<&str>, body: &str) -> Row {
        Row {
            at: 1,
            kind: kind.into(),
            session: session.map(Into::into),
            turn: turn.map(Into::into),
            body: body.into(),
        }
    }

    #[test]
    fn fields_cannot_run_into_each_other() {
        let rows = [
            row("ab", None, None, "c"),
            row("a", None, None, "bc"),
            row("a", Some("b"), None, "c"),
            row("a", None, Some("b"), "c"),
            row("a", Some(""), None, "bc"),
            row("a", None, Some(""), "bc"),
        ];
        let mut hashes: Vec<_> = rows.iter().map(|r| r.hash(&GENESIS)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), rows.len());
    }

    #[test]
    fn the_hash_is_part_of_the_format_and_does_not_change() {
        let hex: String = row("event", Some("ses_1"), None, "{}")
            .hash(&GENESIS)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        // The same value was computed independently with Python's hashlib.
        insta::assert_snapshot!(hex, @"ac629c51f2ccfc3038e171c7fbcf57aabca4b5f2f8024dcdce14f4ba6410579c");
    }

    fn any_row() -> impl Strategy<Value = Row> {
        (
            0..3i64,
            "[a-c]{0,2}",
            proptest::option::of("[a-c]{0,2}"),
            proptest::option::of("[a-c]{0,2}"),
            "[a-c]{0,2}",
        )
            .prop_map(|(at, kind, session, turn, body)| Row {
                at,
                kind,
                session,
                turn,
                body,
            })
    }

    proptest! {
        #[test]
        fn rows_have_the_same_hash_only_if_they_are_the_same(a in any_row(), b in any_row()) {
            prop_assert_eq!(a == b, a.hash(&GENESIS) == b.hash(&GENESIS));
        }
    }
}
