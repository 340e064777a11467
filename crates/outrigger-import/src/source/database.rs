//! OpenCode's database (1.18), read-only.
//!
//! A database with an empty write-ahead log is opened in place as `immutable`, so that SQLite creates no files next to it. If the log
//! contains something, OpenCode is running or was killed: then database and log are copied to a folder of our own, and the copy is read.
//! A copy made while OpenCode was writing is repeated.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use outrigger_protocol::message::MessageWithParts;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::error::{ImportError, Problem};
use crate::program::{Program, StoredSession};
use crate::source::lenient;
use crate::transcript::{MAX_MESSAGES, Transcript};

/// Maximum number of listed sessions.
const MAX_SESSIONS: usize = 20_000;
/// Maximum bytes of a copied database.
const MAX_COPIED: u64 = 4 << 30;
/// How often a copy is repeated.
const TRIES: usize = 5;

/// The start of every SQLite database.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Returns whether a file is an SQLite database.
pub(crate) fn is_database(path: &Path) -> bool {
    use std::io::Read as _;
    let mut begin = [0; MAGIC.len()];
    let file = outrigger_files::open(path);
    file.is_ok_and(|mut file| file.read_exact(&mut begin).is_ok() && begin == MAGIC)
}

/// An open database.
pub(crate) struct Database {
    path: PathBuf,
    conn: Connection,
    /// The folder of the copy while it is read.
    _copy: Option<TempDir>,
}

impl Database {
    pub(crate) fn open(path: &Path) -> Result<Self, ImportError> {
        let failed = |error: &dyn std::fmt::Display| ImportError::read(path, error);
        if !is_database(path) {
            return Err(failed(&"it is not a database of SQLite"));
        }
        let (conn, copy) = match fs::metadata(log_of(path)) {
            Ok(log) if log.len() > 0 => {
                let copy = copied(path)?;
                let file = copy.path().join("opencode.db");
                let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
                (Connection::open_with_flags(file, flags), Some(copy))
            }
            _ => {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
                    | OpenFlags::SQLITE_OPEN_NO_MUTEX
                    | OpenFlags::SQLITE_OPEN_URI;
                (Connection::open_with_flags(address(path), flags), None)
            }
        };
        let conn = conn.map_err(|error| failed(&error))?;
        // Nothing in the database decides what is executed: its views and triggers have no functions with effects.
        let _ = conn.pragma_update(None, "trusted_schema", false);
        Ok(Self {
            path: path.to_owned(),
            conn,
            _copy: copy,
        })
    }

    fn sql<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, ImportError> {
        read(&self.conn).map_err(|error| ImportError::read(&self.path, error))
    }

    /// Returns its sessions, latest first.
    pub(crate) fn found(&self) -> Result<Vec<StoredSession>, ImportError> {
        let sql = "SELECT id, title, directory, time_updated, parent_id FROM session ORDER BY time_updated DESC, id LIMIT ?";
        self.sql(|conn| {
            let mut statement = conn.prepare(sql)?;
            let limit = i64::try_from(MAX_SESSIONS).unwrap_or(i64::MAX);
            let rows = statement.query_map([limit], |row| {
                Ok(StoredSession {
                    id: row.get(0)?,
                    title: row.get(1)?,
                    directory: row.get(2)?,
                    updated: row.get::<_, i64>(3)?.unsigned_abs(),
                    parent: row.get(4)?,
                    file: self.path.clone(),
                })
            })?;
            rows.collect()
        })
    }

    /// Reads one session with its messages.
    pub(crate) fn transcript(
        &self,
        id: &str,
        problems: &mut Vec<Problem>,
    ) -> Result<Transcript, ImportError> {
        let sql = "SELECT title, directory, version, parent_id, time_created, time_updated FROM session WHERE id = ?";
        let head = self.sql(|conn| {
            conn.query_row(sql, [id], |row| {
                Ok(Transcript {
                    program: Program::OpenCode,
                    id: id.to_owned(),
                    title: row.get(0)?,
                    directory: row.get(1)?,
                    version: row.get(2)?,
                    parent: row.get(3)?,
                    created: row.get::<_, i64>(4)?.unsigned_abs(),
                    updated: row.get::<_, i64>(5)?.unsigned_abs(),
                    ..Transcript::default()
                })
            })
            .optional()
        })?;
        let mut transcript =
            head.ok_or_else(|| ImportError::read(&self.path, format!("it has no session {id}")))?;
        let rows = self.rows(
            "SELECT id, data FROM message WHERE session_id = ? ORDER BY id LIMIT ?",
            id,
        )?;
        if rows.len() > MAX_MESSAGES {
            let message = "the session has more than 100,000 messages; the rest is skipped";
            problems.push(Problem::new(&self.path, id, message));
        }
        for (message, data) in rows.into_iter().take(MAX_MESSAGES) {
            let ids = json!({ "id": message, "sessionID": id });
            let Some(info) = self.value(&message, &data, ids, lenient::info, problems) else {
                continue;
            };
            let parts = self
                .rows(
                    "SELECT id, data FROM part WHERE message_id = ? ORDER BY id LIMIT ?",
                    &message,
                )?
                .into_iter()
                .filter_map(|(part, data)| {
                    let ids = json!({ "id": part, "sessionID": id, "messageID": message });
                    self.value(&part, &data, ids, lenient::part, problems)
                })
                .collect();
            transcript.messages.push(MessageWithParts { info, parts });
        }
        Ok(transcript)
    }

    fn rows(&self, sql: &str, key: &str) -> Result<Vec<(String, String)>, ImportError> {
        self.sql(|conn| {
            let limit = i64::try_from(MAX_MESSAGES + 1).unwrap_or(i64::MAX);
            let mut statement = conn.prepare_cached(sql)?;
            let rows =
                statement.query_map(params![key, limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })
    }

    /// Parses a row's value together with its identifiers; an invalid value is a problem.
    fn value<T>(
        &self,
        id: &str,
        data: &str,
        ids: Value,
        read: impl Fn(Value) -> Result<T, serde_json::Error>,
        problems: &mut Vec<Problem>,
    ) -> Option<T> {
        let fields = serde_json::from_str::<Map<String, Value>>(data);
        let value = fields.and_then(|mut fields| {
            if let Value::Object(ids) = ids {
                fields.extend(ids);
            }
            read(Value::Object(fields))
        });
        let wrong = |error: &serde_json::Error| problems.push(Problem::new(&self.path, id, error));
        value.inspect_err(wrong).ok()
    }
}

/// Returns the path of the write-ahead log.
fn log_of(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}

/// Returns the URI of the file as immutable.
fn address(path: &Path) -> String {
    use std::fmt::Write as _;
    use std::os::unix::ffi::OsStrExt as _;
    let mut address = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => address.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => address.push(char::from(*byte)),
            byte => {
                let _ = write!(address, "%{byte:02x}");
            }
        }
    }
    address + "?mode=ro&immutable=1"
}

/// Returns a consistent copy of database and log.
fn copied(path: &Path) -> Result<TempDir, ImportError> {
    let failed = |error: std::io::Error| ImportError::read(path, error);
    let log = log_of(path);
    for _ in 0..TRIES {
        let before = (state(path), state(&log));
        let size = before.0.map_or(0, |it| it.0) + before.1.map_or(0, |it| it.0);
        if size > MAX_COPIED {
            return Err(ImportError::read(
                path,
                "it is larger than 4 GiB and in use; end OpenCode and try again",
            ));
        }
        let folder = tempfile::tempdir().map_err(failed)?;
        fs::copy(path, folder.path().join("opencode.db")).map_err(failed)?;
        // It may be gone by now: then its content is in the database, which has changed.
        let log_copy = fs::copy(&log, folder.path().join("opencode.db-wal"));
        if (state(path), state(&log)) == before && log_copy.is_ok() {
            return Ok(folder);
        }
    }
    Err(ImportError::read(
        path,
        "OpenCode is writing to it; try again when it is idle",
    ))
}

fn state(path: &Path) -> Option<(u64, SystemTime)> {
    let meta = path.metadata().ok()?;
    Some((meta.len(), meta.modified().ok()?))
}
