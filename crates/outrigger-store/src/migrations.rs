//! The tables, and their migrations.

use rusqlite::{Connection, Result, TransactionBehavior};

/// `PRAGMA application_id` of our files: "OutR".
pub(crate) const APPLICATION_ID: i32 = 0x4F75_7452;

/// Every step since the first format. The format of a file (`PRAGMA user_version`) is the number of steps applied; a
/// released step is never changed, a new one is appended.
pub(crate) const STEPS: &[&str] = &[FORMAT_1, FORMAT_2, FORMAT_3, FORMAT_4];

// The log's `kind`, `session` and `turn` repeat values of `body` for the indexes. The triggers are not protection
// against an attacker (the hash chain detects changes), they guard against errors in our own code.
const FORMAT_1: &str = "
CREATE TABLE log(
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    session TEXT,
    turn TEXT,
    body TEXT NOT NULL,
    prev_hash BLOB NOT NULL,
    hash BLOB NOT NULL
) STRICT;
CREATE INDEX log_session ON log(session, kind) WHERE session IS NOT NULL;
CREATE INDEX log_turn ON log(turn, kind) WHERE turn IS NOT NULL;
CREATE TRIGGER log_update BEFORE UPDATE ON log BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER log_delete BEFORE DELETE ON log BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;

CREATE TABLE sessions(
    id TEXT PRIMARY KEY,
    project TEXT NOT NULL,
    directory TEXT NOT NULL,
    parent TEXT,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT;
CREATE INDEX sessions_updated ON sessions(updated);
CREATE INDEX sessions_parent ON sessions(parent) WHERE parent IS NOT NULL;
CREATE TABLE messages(
    session TEXT NOT NULL,
    id TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY(session, id)
) STRICT;
CREATE TABLE parts(
    session TEXT NOT NULL,
    message TEXT NOT NULL,
    id TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY(session, message, id)
) STRICT;
CREATE TABLE todos(session TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;
CREATE TABLE turns(
    turn TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    began INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    last_step INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    open INTEGER NOT NULL
) STRICT;
CREATE INDEX turns_session ON turns(session, began);
CREATE INDEX turns_open ON turns(turn) WHERE open = 1;
CREATE TABLE gone(session TEXT PRIMARY KEY) STRICT;

CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
";

/// The trigger that retention removes temporarily.
pub(crate) const AUDIT_STAYS: &str = "
CREATE TRIGGER audit_delete BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
";

// The audit has no index: it is limited in size, and read rarely.
const FORMAT_2: &str = "
CREATE TABLE audit(
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    prev_hash BLOB NOT NULL,
    hash BLOB NOT NULL
) STRICT;
CREATE TRIGGER audit_update BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER audit_delete BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
CREATE TABLE audit_seals(
    seq INTEGER NOT NULL,
    cut INTEGER NOT NULL,
    hash BLOB NOT NULL,
    log_seq INTEGER NOT NULL,
    log_hash BLOB NOT NULL,
    at INTEGER NOT NULL,
    key BLOB NOT NULL,
    signature BLOB NOT NULL,
    PRIMARY KEY(seq, cut)
) STRICT;
";

// Lists of sessions are read in the order in which they are displayed, as far as requested.
const FORMAT_3: &str = "
DROP INDEX sessions_updated;
CREATE INDEX sessions_updated ON sessions(updated DESC, id);
CREATE INDEX sessions_directory ON sessions(directory, updated DESC, id);
CREATE INDEX sessions_project ON sessions(project, updated DESC, id);
";

// Completed messages that plugins must be notified of; unclaimed ones are looked up at each start.
const FORMAT_4: &str = "
CREATE TABLE completions(
    session TEXT NOT NULL,
    message TEXT NOT NULL,
    turn TEXT,
    taker TEXT,
    PRIMARY KEY(session, message)
) STRICT;
CREATE INDEX completions_due ON completions(session) WHERE taker IS NULL;
";

/// Returns the format of an open file; 0 for a new one.
pub(crate) fn version(conn: &Connection) -> Result<u32> {
    conn.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Migrates a file to the newest of `steps`, one transaction for each step. Several processes may do this at once.
pub(crate) fn migrate(conn: &mut Connection, steps: &[&str]) -> Result<()> {
    loop {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Re-read under the lock: another process may have been faster.
        let done = version(&tx)?;
        let Some(step) = steps.get(usize::try_from(done).unwrap_or(usize::MAX)) else {
            return Ok(());
        };
        if done == 0 {
            tx.pragma_update(None, "application_id", APPLICATION_ID)?;
        }
        tx.execute_batch(step)?;
        tx.pragma_update(None, "user_version", done + 1)?;
        crate::fault::point("store.before_migrate_commit");
        tx.commit()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_run_once_and_in_order_and_a_failed_one_leaves_the_file_as_it_was() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, STEPS).unwrap();
        assert_eq!(version(&conn).unwrap(), 4);
        let more = [
            FORMAT_1,
            FORMAT_2,
            FORMAT_3,
            FORMAT_4,
            "ALTER TABLE meta ADD COLUMN at INTEGER",
            "CREATE TABLE a(x); CREATE TABLE meta(y);",
        ];
        let error = migrate(&mut conn, &more).unwrap_err();
        assert!(error.to_string().contains("meta"), "{error}");
        assert_eq!(version(&conn).unwrap(), 5);
        let tables: i64 = conn
            .query_row(
                "SELECT count(*) FROM sqlite_schema WHERE name = 'a'",
                [],
                |r| r.get(0),
            )
            .unwrap();
        assert_eq!(tables, 0, "the failed step left nothing");
        migrate(&mut conn, &more[..5]).unwrap();
    }

    #[test]
    fn the_log_refuses_changes() {
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn, STEPS).unwrap();
        conn.execute(
            "INSERT INTO log VALUES (1, 1, 'event', NULL, NULL, '{}', x'00', x'00')",
            [],
        )
        .unwrap();
        for sql in ["UPDATE log SET at = 2", "DELETE FROM log"] {
            let error = conn.execute(sql, []).unwrap_err().to_string();
            assert!(error.contains("append-only"), "{error}");
        }
    }
}
