//! What models cost, summed from the messages that are stored.

use outrigger_protocol::Millis;
use rusqlite::{Connection, params};

/// The tokens and the cost of one model on one day.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelUsage {
    /// `YYYY-MM-DD`, in the local time zone.
    pub day: String,
    /// Provider.
    pub provider: String,
    /// Model.
    pub model: String,
    /// Answers of the model.
    pub answers: u64,
    /// Tokens sent that were not in the provider's cache.
    pub input: u64,
    /// Tokens received, reasoning included.
    pub output: u64,
    /// Tokens read from the provider's cache.
    pub cache_read: u64,
    /// Tokens written to the provider's cache.
    pub cache_write: u64,
    /// US dollars.
    pub cost: f64,
}

const SUMS: &str = "
    SELECT date(m.body ->> '$.time.created' / 1000, 'unixepoch', 'localtime'), m.body ->> '$.providerID', m.body ->> '$.modelID', count(*),
        sum(m.body ->> '$.tokens.input'), sum(m.body ->> '$.tokens.output') + sum(m.body ->> '$.tokens.reasoning'),
        sum(m.body ->> '$.tokens.cache.read'), sum(m.body ->> '$.tokens.cache.write'), sum(m.body ->> '$.cost')
    FROM messages m JOIN sessions s ON s.id = m.session
    WHERE m.body ->> '$.role' = 'assistant' AND m.body ->> '$.time.created' >= ?1 AND (?2 IS NULL OR s.directory = ?2)
    GROUP BY 1, 2, 3 ORDER BY 1, 2, 3";

/// By day and model, the oldest day first.
pub(crate) fn usage(
    conn: &Connection,
    since: Millis,
    directory: Option<&str>,
) -> rusqlite::Result<Vec<ModelUsage>> {
    let since = i64::try_from(since).unwrap_or(i64::MAX);
    conn.prepare(SUMS)?
        .query_map(params![since, directory], |row| {
            let count = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
            Ok(ModelUsage {
                day: row.get(0)?,
                provider: row.get(1)?,
                model: row.get(2)?,
                answers: count(3)?,
                input: count(4)?,
                output: count(5)?,
                cache_read: count(6)?,
                cache_write: count(7)?,
                cost: row.get(8)?,
            })
        })?
        .collect()
}
