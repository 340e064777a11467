//! Stored parts, for a search over all sessions.

use std::ops::ControlFlow;

use rusqlite::Connection;

use crate::error::StoreError;
use crate::store::Store;

/// A stored part.
#[derive(Clone, Copy, Debug)]
pub struct StoredPart<'a> {
    /// Its row number: parts stored later have greater ones.
    pub row: i64,
    /// Id of the session.
    pub session: &'a str,
    /// Id of the message.
    pub message: &'a str,
    /// Id of the part.
    pub id: &'a str,
    /// JSON.
    pub body: &'a str,
}

impl Store {
    /// Shows the parts of all sessions, the one that was stored last first, from before a place on and until it is enough. Nothing is
    /// decoded and nothing kept, so that it costs the log nothing.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn scan_parts(
        &self,
        before: Option<i64>,
        visit: impl FnMut(StoredPart<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.readers()
            .read(|r| r.sql(|conn| scan(conn, before.unwrap_or(i64::MAX), visit)))
    }
}

fn scan(
    conn: &Connection,
    before: i64,
    mut visit: impl FnMut(StoredPart<'_>) -> ControlFlow<()>,
) -> rusqlite::Result<()> {
    let mut parts = conn.prepare_cached(
        "SELECT rowid, session, message, id, body FROM parts WHERE rowid < ? ORDER BY rowid DESC",
    )?;
    let mut rows = parts.query([before])?;
    while let Some(row) = rows.next()? {
        let part = StoredPart {
            row: row.get(0)?,
            session: row.get_ref(1)?.as_str()?,
            message: row.get_ref(2)?.as_str()?,
            id: row.get_ref(3)?.as_str()?,
            body: row.get_ref(4)?.as_str()?,
        };
        if visit(part).is_break() {
            break;
        }
    }
    Ok(())
}
