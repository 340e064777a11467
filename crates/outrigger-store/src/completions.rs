//! Completed messages that plugins must be notified of (A4).

use outrigger_protocol::id::{MessageId, SessionId, TurnId};
use outrigger_protocol::log::CompletionRecord;
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::StoreError;
use crate::store::Store;

impl Store {
    /// Messages that nobody has taken yet to notify plugins of them, the oldest first.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn due_completions(&self) -> Result<Vec<CompletionRecord>, StoreError> {
        self.read_sql(due)
    }

    /// Who took a message first; `None` when nobody did, or it is not due.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn completion_taker(
        &self,
        session: &SessionId,
        message: &MessageId,
    ) -> Result<Option<String>, StoreError> {
        self.read_sql(|conn| taker(conn, session, message))
    }
}

fn due(conn: &Connection) -> rusqlite::Result<Vec<CompletionRecord>> {
    conn.prepare_cached(
        "SELECT session, message, turn FROM completions WHERE taker IS NULL ORDER BY rowid",
    )?
    .query_map([], |row| {
        Ok(CompletionRecord {
            session: SessionId(row.get(0)?),
            message: MessageId(row.get(1)?),
            turn: row.get::<_, Option<String>>(2)?.map(TurnId),
            taker: None,
        })
    })?
    .collect()
}

fn taker(
    conn: &Connection,
    session: &SessionId,
    message: &MessageId,
) -> rusqlite::Result<Option<String>> {
    conn.prepare_cached("SELECT taker FROM completions WHERE session = ? AND message = ?")?
        .query_row(params![session.0, message.0], |row| row.get(0))
        .optional()
        .map(Option::flatten)
}
