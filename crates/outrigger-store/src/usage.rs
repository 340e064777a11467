//! Cost of models, summed from the stored messages. Answers stored by another program (`outrigger_protocol::origin::IMPORTED`)
//! were paid for there and are not counted.

use outrigger_protocol::Millis;
use rusqlite::{Connection, params};

/// The tokens and the cost of one model on one day.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelUsage {
    /// `YYYY-MM-DD`, in the local time zone.
    pub day: String,
    /// Id of the provider.
    pub provider: String,
    /// Id of the model.
    pub model: String,
    /// Number of answers.
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
    WHERE m.body ->> '$.role' = 'assistant' AND m.body ->> '$.imported' IS NULL
        AND m.body ->> '$.time.created' >= ?1 AND (?2 IS NULL OR s.directory = ?2)
    GROUP BY 1, 2, 3 ORDER BY 1, 2, 3";

/// Returns the usage by day and model, the oldest day first.
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

/// Usage of a session with its subagents, and of its parent if it is a subagent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SessionUsage {
    /// Answered prompts, including the current one.
    pub turns: u64,
    /// Tokens sent and received, as reported by providers; estimated if not reported.
    pub tokens: u64,
    /// US dollars.
    pub cost: f64,
}

const SESSION: &str = "
    WITH RECURSIVE
    up(id, parent) AS (SELECT id, parent FROM sessions WHERE id = ?1
        UNION SELECT s.id, s.parent FROM sessions s JOIN up ON s.id = up.parent),
    tree(id) AS (SELECT id FROM up UNION SELECT s.id FROM sessions s JOIN tree ON s.parent = tree.id)
    SELECT
        (SELECT count(DISTINCT m.body ->> '$.parentID') FROM messages m
            WHERE m.session IN tree AND m.body ->> '$.role' = 'assistant' AND m.body ->> '$.imported' IS NULL),
        total(max(0, ifnull(body ->> '$.tokens.input', 0)) + max(0, ifnull(body ->> '$.tokens.output', 0))
            + max(0, ifnull(body ->> '$.tokens.reasoning', 0)) + max(0, ifnull(body ->> '$.tokens.cache.read', 0))
            + max(0, ifnull(body ->> '$.tokens.cache.write', 0))),
        ifnull(sum(body ->> '$.cost'), 0.0)
    FROM sessions WHERE id IN tree";

/// Estimated tokens of answers without reported input, since every request sends something: a fourth of the bytes up to and
/// including the answer.
const ESTIMATE: &str = "
    WITH RECURSIVE
    up(id, parent) AS (SELECT id, parent FROM sessions WHERE id = ?1
        UNION SELECT s.id, s.parent FROM sessions s JOIN up ON s.id = up.parent),
    tree(id) AS (SELECT id FROM up UNION SELECT s.id FROM sessions s JOIN tree ON s.parent = tree.id),
    sizes(session, message, size) AS (SELECT session, message, sum(length(body)) FROM parts
        WHERE session IN tree GROUP BY session, message),
    sent(session, message, size) AS (SELECT session, message, sum(size) OVER (PARTITION BY session ORDER BY message) FROM sizes)
    SELECT total(sent.size) / 4 FROM sent JOIN messages m ON m.session = sent.session AND m.id = sent.message
    WHERE m.body ->> '$.role' = 'assistant' AND m.body ->> '$.finish' IS NOT NULL AND m.body ->> '$.imported' IS NULL
        AND max(0, ifnull(m.body ->> '$.tokens.input', 0)) + max(0, ifnull(m.body ->> '$.tokens.cache.read', 0))
            + max(0, ifnull(m.body ->> '$.tokens.cache.write', 0)) = 0";

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is held to the range"
)]
fn whole(tokens: f64) -> u64 {
    tokens.max(0.0) as u64
}

pub(crate) fn of_session(conn: &Connection, session: &str) -> rusqlite::Result<SessionUsage> {
    let mut estimate = conn.prepare_cached(ESTIMATE)?;
    let estimated: f64 = estimate.query_row([session], |row| row.get(0))?;
    conn.prepare_cached(SESSION)?.query_row([session], |row| {
        Ok(SessionUsage {
            turns: row.get::<_, i64>(0).map(i64::unsigned_abs)?,
            tokens: whole(row.get::<_, f64>(1)? + estimated),
            cost: row.get(2)?,
        })
    })
}
