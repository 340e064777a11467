//! Reading: each reader has its own connection, so that reads never wait for the writer.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use outrigger_protocol::Millis;
use outrigger_protocol::id::{SessionId, TurnId};
use outrigger_protocol::log::LogRecord;
use outrigger_protocol::session::{Session, Todo};
use outrigger_stdx::sync::lock;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Params, Row, params};
use serde::de::DeserializeOwned;

use crate::error::StoreError;
use crate::open::{self, OpenOptions};

/// Maximum number of idle connections kept open.
const MAX_IDLE: usize = 4;

/// Selects sessions of a listing. The default selects all.
#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    /// Of this project.
    pub project: Option<String>,
    /// With this working directory.
    pub directory: Option<String>,
    /// Without those started by an agent (subagents).
    pub roots_only: bool,
    /// In this folder of the project or below it, relative to the project's root.
    pub path: Option<String>,
    /// Used at this time or later.
    pub since: Option<Millis>,
    /// Used before this time: the next page of a listing.
    pub before: Option<Millis>,
    /// With this text in the title, ignoring the case of ASCII letters.
    pub search: Option<String>,
    /// Without archived ones.
    pub not_archived: bool,
    /// Maximum number of sessions.
    pub limit: Option<usize>,
}

/// Part of the log.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    /// Records of a session.
    Session(&'a SessionId),
    /// Records of a turn.
    Turn(&'a TurnId),
}

/// Selects records of the log. The default selects all.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordQuery<'a> {
    /// Of this session or turn.
    pub scope: Option<Scope<'a>>,
    /// Of this kind, as named by [`LogRecord::kind`].
    pub kind: Option<&'a str>,
    /// With a greater number.
    pub after: i64,
    /// Maximum number of records.
    pub limit: Option<usize>,
}

/// Number of uses by a plugin, from the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginUse {
    /// `hook`, `tool` or `client`.
    pub kind: String,
    /// Plugin of the hook or client; absent for tools, and if a request does not name it.
    pub plugin: Option<String>,
    /// OpenCode's name of the hook, the tool's name, or `METHOD path` of the request.
    pub name: String,
    /// Number of uses.
    pub count: u64,
}

/// A record with its position in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRecord {
    /// Number in the log, from 1.
    pub seq: i64,
    /// Time of writing.
    pub at: Millis,
    /// The record.
    pub record: LogRecord,
}

/// A turn, from its steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnInfo {
    /// The turn.
    pub turn: TurnId,
    /// Its session.
    pub session: SessionId,
    /// Time of its first step.
    pub began: Millis,
    /// Time of its last step.
    pub last_at: Millis,
    /// Number of its last step, from 0.
    pub last_step: u64,
    /// Number of that step's record in the log.
    pub last_seq: i64,
    /// It has not ended.
    pub open: bool,
}

pub(crate) struct Readers {
    path: PathBuf,
    options: OpenOptions,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(crate) fn new(path: &Path, options: OpenOptions) -> Self {
        Self {
            path: path.to_path_buf(),
            options,
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Closes every idle connection.
    pub(crate) fn clear(&self) {
        lock(&self.idle).clear();
    }

    /// Reads within one transaction, so that several statements see the same state.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&Reader<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let kept = lock(&self.idle).pop();
        let conn = match kept {
            Some(conn) => conn,
            None => open::connect(&self.path, OpenFlags::SQLITE_OPEN_READ_ONLY, &self.options)?,
        };
        let result = conn
            .unchecked_transaction()
            .map_err(|e| StoreError::sqlite(&self.path, "read", e))
            .and_then(|tx| {
                read(&Reader {
                    conn: &tx,
                    path: &self.path,
                })
            });
        if result.is_ok() {
            let mut idle = lock(&self.idle);
            if idle.len() < MAX_IDLE {
                idle.push(conn);
            }
        }
        result
    }
}

/// A connection within a read transaction.
pub(crate) struct Reader<'a> {
    conn: &'a Connection,
    path: &'a Path,
}

impl Reader<'_> {
    pub(crate) fn sql<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        read(self.conn).map_err(|e| StoreError::sqlite(self.path, "read", e))
    }

    pub(crate) fn decode<T: DeserializeOwned>(
        &self,
        what: &str,
        id: &str,
        body: &str,
    ) -> Result<T, StoreError> {
        serde_json::from_str(body).map_err(|e| StoreError::Decode {
            path: self.path.to_path_buf(),
            what: format!("{what} {id}"),
            message: e.to_string(),
        })
    }

    /// Decodes rows of an id and a JSON text while reading them, with the bytes of the text.
    pub(crate) fn decoded<T: DeserializeOwned>(
        &self,
        what: &str,
        sql: &str,
        values: impl Params,
    ) -> Result<Vec<(T, usize)>, StoreError> {
        let of_row = |row: &Row<'_>| {
            let (id, body) = (row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_str()?);
            Ok(self.decode(what, id, body).map(|it| (it, body.len())))
        };
        let found: Vec<Result<(T, usize), StoreError>> = self.sql(|conn| {
            conn.prepare_cached(sql)?
                .query_map(values, of_row)?
                .collect()
        })?;
        found.into_iter().collect()
    }

    fn list<T: DeserializeOwned>(
        &self,
        what: &str,
        sql: &str,
        values: impl Params,
    ) -> Result<Vec<T>, StoreError> {
        let found = self.decoded(what, sql, values)?;
        Ok(found.into_iter().map(|(it, _)| it).collect())
    }

    pub(crate) fn session(&self, id: &SessionId) -> Result<Option<Session>, StoreError> {
        let found = self.list(
            "session",
            "SELECT id, body FROM sessions WHERE id = ?",
            [id.as_str()],
        )?;
        Ok(found.into_iter().next())
    }

    pub(crate) fn sessions(&self, filter: &SessionFilter) -> Result<Vec<Session>, StoreError> {
        // Only the given conditions: then SQLite walks an index in the order of the list and stops at the limit.
        let text = |text: &Option<String>| text.clone().map(Value::Text);
        let flag = |is: bool| is.then_some(Value::Null);
        let millis = |at: Option<Millis>| time(at).map(Value::Integer);
        let conditions = [
            ("directory = ?", text(&filter.directory)),
            ("project = ?", text(&filter.project)),
            ("parent IS ?", flag(filter.roots_only)),
            ("updated >= ?", millis(filter.since)),
            ("updated < ?", millis(filter.before)),
            (
                "instr(lower(body ->> '$.title'), lower(?)) > 0",
                text(&filter.search),
            ),
            ("body ->> '$.time.archived' IS ?", flag(filter.not_archived)),
            (
                "instr(body ->> '$.path' || '/', ?) = 1",
                filter
                    .path
                    .as_ref()
                    .map(|path| Value::Text(format!("{path}/"))),
            ),
        ];
        let mut sql = "SELECT id, body FROM sessions WHERE TRUE".to_owned();
        let mut values = Vec::new();
        for (condition, value) in conditions {
            if let Some(value) = value {
                sql.push_str(" AND ");
                sql.push_str(condition);
                values.push(value);
            }
        }
        sql.push_str(" ORDER BY updated DESC, id LIMIT ?");
        values.push(Value::Integer(limit(filter.limit)));
        self.list("session", &sql, rusqlite::params_from_iter(values))
    }

    pub(crate) fn children(&self, id: &SessionId) -> Result<Vec<Session>, StoreError> {
        self.list(
            "session",
            "SELECT id, body FROM sessions WHERE parent = ? ORDER BY created, id",
            [id.as_str()],
        )
    }

    pub(crate) fn todos(&self, session: &SessionId) -> Result<Vec<Todo>, StoreError> {
        let found: Vec<Vec<Todo>> = self.list(
            "todo list",
            "SELECT session, body FROM todos WHERE session = ?",
            [session.as_str()],
        )?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    pub(crate) fn turns(&self, only: Turns<'_>) -> Result<Vec<TurnInfo>, StoreError> {
        const COLUMNS: &str =
            "SELECT turn, session, began, last_at, last_step, last_seq, open FROM turns";
        let (sql, key, most) = match only {
            Turns::Open => (
                format!("{COLUMNS} WHERE open = 1 AND ?1 IS NULL ORDER BY last_seq LIMIT ?2"),
                None,
                -1,
            ),
            Turns::Last(session, most) => (
                format!("{COLUMNS} WHERE session = ?1 ORDER BY last_seq DESC LIMIT ?2"),
                Some(session.as_str()),
                limit(Some(most)),
            ),
            Turns::One(turn) => (
                format!("{COLUMNS} WHERE turn = ?1 LIMIT ?2"),
                Some(turn.as_str()),
                1,
            ),
        };
        self.sql(|conn| {
            conn.prepare_cached(&sql)?
                .query_map(params![key, most], |row| {
                    Ok(TurnInfo {
                        turn: TurnId(row.get(0)?),
                        session: SessionId(row.get(1)?),
                        began: row.get::<_, i64>(2)?.unsigned_abs(),
                        last_at: row.get::<_, i64>(3)?.unsigned_abs(),
                        last_step: row.get::<_, i64>(4)?.unsigned_abs(),
                        last_seq: row.get(5)?,
                        open: row.get(6)?,
                    })
                })?
                .collect()
        })
    }

    pub(crate) fn records(&self, query: &RecordQuery<'_>) -> Result<Vec<StoredRecord>, StoreError> {
        let (place, key) = match query.scope {
            None => ("?1 IS NULL", None),
            Some(Scope::Session(id)) => ("session = ?1", Some(id.as_str())),
            Some(Scope::Turn(id)) => ("turn = ?1", Some(id.as_str())),
        };
        let kind = if query.kind.is_some() {
            "kind = ?2"
        } else {
            "?2 IS NULL"
        };
        let sql = format!(
            "SELECT seq, at, body FROM log WHERE {place} AND {kind} AND seq > ?3 ORDER BY seq LIMIT ?4"
        );
        let rows: Vec<(i64, i64, String)> = self.sql(|conn| {
            conn.prepare_cached(&sql)?
                .query_map(
                    params![key, query.kind, query.after, limit(query.limit)],
                    |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
                )?
                .collect()
        })?;
        rows.into_iter()
            .map(|(seq, at, body)| {
                Ok(StoredRecord {
                    seq,
                    at: at.unsigned_abs(),
                    record: self.decode("record", &seq.to_string(), &body)?,
                })
            })
            .collect()
    }

    pub(crate) fn plugin_use(&self) -> Result<Vec<PluginUse>, StoreError> {
        const COUNTS: &str = "
            SELECT kind, json_extract(body, '$.plugin') AS plugin, json_extract(body, '$.hook') AS name, count(*)
                FROM log WHERE kind = 'hook' AND json_extract(body, '$.outcome') NOT IN ('skipped', 'refused') GROUP BY plugin, name
            UNION ALL
            SELECT kind, NULL, json_extract(body, '$.call.tool') AS name, count(*)
                FROM log WHERE kind = 'tool' GROUP BY name
            UNION ALL
            SELECT kind, json_extract(body, '$.plugin') AS plugin,
                    json_extract(body, '$.method') || ' ' || json_extract(body, '$.path') AS name, count(*)
                FROM log WHERE kind = 'client' GROUP BY plugin, name
            ORDER BY 1, 2, 3";
        self.sql(|conn| {
            conn.prepare_cached(COUNTS)?
                .query_map([], |row| {
                    Ok(PluginUse {
                        kind: row.get(0)?,
                        plugin: row.get(1)?,
                        name: row.get(2)?,
                        count: row.get::<_, i64>(3)?.unsigned_abs(),
                    })
                })?
                .collect()
        })
    }

    pub(crate) fn hash_at(&self, seq: i64) -> Result<Option<crate::chain::Hash>, StoreError> {
        self.sql(|conn| {
            conn.prepare_cached("SELECT hash FROM log WHERE seq = ?")?
                .query_row([seq], |row| row.get(0))
                .optional()
        })
    }
}

/// Selects turns.
#[derive(Clone, Copy)]
pub(crate) enum Turns<'a> {
    Open,
    /// The newest first, up to a limit.
    Last(&'a SessionId, usize),
    One(&'a TurnId),
}

/// Converts a time; one beyond SQLite's range is later than every session.
fn time(at: Option<Millis>) -> Option<i64> {
    at.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX))
}

/// Converts a limit; SQLite treats a negative one as none.
pub(crate) fn limit(most: Option<usize>) -> i64 {
    most.map_or(-1, |n| i64::try_from(n).unwrap_or(-1))
}
