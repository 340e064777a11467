//! Projections: tables of the current state, derived from the log only.
//!
//! Rows are applied from their stored text, on writing as on a rebuild, so a projection cannot contain what the log
//! does not. JSON is copied as stored in the log.

use std::borrow::Cow;

use rusqlite::{Connection, OptionalExtension, Result, params};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chain::Row;

/// Tables that a rebuild empties, with their columns in the order of a dump.
const TABLES: &[(&str, &str)] = &[
    (
        "sessions",
        "id, project, directory, parent, created, updated, body",
    ),
    ("messages", "session, id, body"),
    ("parts", "session, message, id, body"),
    ("todos", "session, body"),
    (
        "turns",
        "turn, session, began, last_at, last_step, last_seq, open",
    ),
    ("gone", "session"),
    ("completions", "session, message, turn, taker"),
];

#[derive(Deserialize)]
struct EventView<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    properties: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Properties<'a> {
    #[serde(rename = "sessionID", borrow)]
    session: Cow<'a, str>,
    #[serde(rename = "messageID", borrow, default)]
    message: Option<Cow<'a, str>>,
    #[serde(rename = "partID", borrow, default)]
    part_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    info: Option<&'a RawValue>,
    #[serde(borrow, default)]
    part: Option<&'a RawValue>,
    #[serde(borrow, default)]
    todos: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct SessionView<'a> {
    #[serde(rename = "projectID", borrow)]
    project: Cow<'a, str>,
    #[serde(borrow)]
    directory: Cow<'a, str>,
    #[serde(rename = "parentID", borrow, default)]
    parent: Option<Cow<'a, str>>,
    time: SessionTimes,
}

#[derive(Deserialize)]
struct SessionTimes {
    created: i64,
    updated: i64,
}

#[derive(Deserialize)]
struct IdView<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(rename = "messageID", borrow, default)]
    message: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct StepView<'a> {
    #[serde(borrow)]
    turn: Cow<'a, str>,
    #[serde(borrow)]
    session_id: Cow<'a, str>,
    n: i64,
    at: i64,
    #[serde(default)]
    last: bool,
}

#[derive(Deserialize)]
struct CompletionView<'a> {
    #[serde(borrow)]
    session: Cow<'a, str>,
    #[serde(borrow)]
    message: Cow<'a, str>,
    #[serde(borrow, default)]
    turn: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    taker: Option<Cow<'a, str>>,
}

/// Applies one row of the log. A row that does not affect a projection, or is invalid, changes nothing: the log keeps
/// it nevertheless.
pub(crate) fn apply(conn: &Connection, seq: i64, row: &Row) -> Result<()> {
    match row.kind.as_str() {
        "event" => match serde_json::from_str::<EventView<'_>>(&row.body) {
            Ok(event) => apply_event(conn, &event),
            Err(_) => Ok(()),
        },
        "turn_step" => match serde_json::from_str::<StepView<'_>>(&row.body) {
            Ok(step) => apply_step(conn, seq, &step),
            Err(_) => Ok(()),
        },
        "completion" => match serde_json::from_str::<CompletionView<'_>>(&row.body) {
            Ok(completion) => apply_completion(conn, &completion),
            Err(_) => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Which messages of its session an event changes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Touched {
    Nothing,
    Message(String),
    All,
}

/// Reads from the text of an event's record which messages [`apply`] changes.
pub(crate) fn touched(body: &str) -> Touched {
    let Ok(event) = serde_json::from_str::<EventView<'_>>(body) else {
        return Touched::Nothing;
    };
    match event.kind.as_ref() {
        "session.created" | "session.deleted" => return Touched::All,
        "message.updated" | "message.removed" | "message.part.updated" | "message.part.removed" => {
        }
        _ => return Touched::Nothing,
    }
    let Ok(p) = serde_json::from_str::<Properties<'_>>(event.properties.get()) else {
        return Touched::Nothing;
    };
    let written = p
        .info
        .or(p.part)
        .map(RawValue::get)
        .and_then(|json| serde_json::from_str::<IdView<'_>>(json).ok());
    let message = match event.kind.as_ref() {
        "message.updated" => written.map(|it| it.id),
        "message.part.updated" => written.and_then(|it| it.message),
        _ => p.message,
    };
    message
        .map(Cow::into_owned)
        .map_or(Touched::Nothing, Touched::Message)
}

fn apply_event(conn: &Connection, event: &EventView<'_>) -> Result<()> {
    if !matches!(
        event.kind.as_ref(),
        "session.created"
            | "session.updated"
            | "session.deleted"
            | "message.updated"
            | "message.removed"
            | "message.part.updated"
            | "message.part.removed"
            | "todo.updated"
    ) {
        return Ok(());
    }
    let Ok(p) = serde_json::from_str::<Properties<'_>>(event.properties.get()) else {
        return Ok(());
    };
    let session = p.session.as_ref();
    match event.kind.as_ref() {
        "session.created" => {
            run(conn, "DELETE FROM gone WHERE session = ?", params![session])?;
            return put_session(conn, session, p.info);
        }
        "session.deleted" => return delete_session(conn, session),
        _ => {}
    }
    // A late event for a deleted session must not restore parts of it.
    if is_gone(conn, session)? {
        return Ok(());
    }
    let (message, part_id) = (p.message.as_deref(), p.part_id.as_deref());
    match event.kind.as_ref() {
        "session.updated" => put_session(conn, session, p.info),
        "message.updated" => p.info.map_or(Ok(()), |it| put_message(conn, session, it)),
        "message.removed" => message.map_or(Ok(()), |it| delete_message(conn, session, it)),
        "message.part.updated" => p.part.map_or(Ok(()), |it| put_part(conn, session, it)),
        "message.part.removed" => match (message, part_id) {
            (Some(message), Some(part)) => run(
                conn,
                "DELETE FROM parts WHERE session = ? AND message = ? AND id = ?",
                params![session, message, part],
            ),
            _ => Ok(()),
        },
        "todo.updated" => p.todos.map_or(Ok(()), |todos| {
            run(
                conn,
                "INSERT INTO todos(session, body) VALUES (?, ?) ON CONFLICT DO UPDATE SET body = excluded.body",
                params![session, todos.get()],
            )
        }),
        _ => Ok(()),
    }
}

fn delete_message(conn: &Connection, session: &str, message: &str) -> Result<()> {
    run(
        conn,
        "DELETE FROM parts WHERE session = ? AND message = ?",
        params![session, message],
    )?;
    run(
        conn,
        "DELETE FROM completions WHERE session = ? AND message = ?",
        params![session, message],
    )?;
    run(
        conn,
        "DELETE FROM messages WHERE session = ? AND id = ?",
        params![session, message],
    )
}

fn put_session(conn: &Connection, id: &str, info: Option<&RawValue>) -> Result<()> {
    let Some(info) = info else { return Ok(()) };
    let Ok(view) = serde_json::from_str::<SessionView<'_>>(info.get()) else {
        return Ok(());
    };
    run(
        conn,
        "INSERT INTO sessions(id, project, directory, parent, created, updated, body) VALUES (?,?,?,?,?,?,?)
         ON CONFLICT DO UPDATE SET project = excluded.project, directory = excluded.directory, parent = excluded.parent,
         created = excluded.created, updated = excluded.updated, body = excluded.body",
        params![
            id,
            view.project.as_ref(),
            view.directory.as_ref(),
            view.parent.as_deref(),
            view.time.created,
            view.time.updated,
            info.get()
        ],
    )
}

fn put_message(conn: &Connection, session: &str, info: &RawValue) -> Result<()> {
    let Ok(view) = serde_json::from_str::<IdView<'_>>(info.get()) else {
        return Ok(());
    };
    run(
        conn,
        "INSERT INTO messages(session, id, body) VALUES (?,?,?) ON CONFLICT DO UPDATE SET body = excluded.body",
        params![session, view.id.as_ref(), info.get()],
    )
}

fn put_part(conn: &Connection, session: &str, part: &RawValue) -> Result<()> {
    let Ok(IdView {
        id,
        message: Some(message),
    }) = serde_json::from_str::<IdView<'_>>(part.get())
    else {
        return Ok(());
    };
    run(
        conn,
        "INSERT INTO parts(session, message, id, body) VALUES (?,?,?,?) ON CONFLICT DO UPDATE SET body = excluded.body",
        params![session, message.as_ref(), id.as_ref(), part.get()],
    )
}

fn delete_session(conn: &Connection, session: &str) -> Result<()> {
    for sql in [
        "DELETE FROM parts WHERE session = ?",
        "DELETE FROM messages WHERE session = ?",
        "DELETE FROM todos WHERE session = ?",
        "DELETE FROM turns WHERE session = ?",
        "DELETE FROM completions WHERE session = ?",
        "DELETE FROM sessions WHERE id = ?",
        "INSERT OR IGNORE INTO gone(session) VALUES (?)",
    ] {
        run(conn, sql, params![session])?;
    }
    Ok(())
}

fn is_gone(conn: &Connection, session: &str) -> Result<bool> {
    conn.prepare_cached("SELECT 1 FROM gone WHERE session = ?")?
        .query_row([session], |_| Ok(()))
        .optional()
        .map(|found| found.is_some())
}

fn apply_step(conn: &Connection, seq: i64, step: &StepView<'_>) -> Result<()> {
    if is_gone(conn, &step.session_id)? {
        return Ok(());
    }
    // An ended turn stays ended, whatever is written about it later.
    run(
        conn,
        "INSERT INTO turns(turn, session, began, last_at, last_step, last_seq, open) VALUES (?1,?2,?3,?3,?4,?5,?6)
         ON CONFLICT DO UPDATE SET last_at = excluded.last_at, last_step = excluded.last_step,
         last_seq = excluded.last_seq, open = min(open, excluded.open)",
        params![
            step.turn.as_ref(),
            step.session_id.as_ref(),
            step.at,
            step.n,
            seq,
            i64::from(!step.last)
        ],
    )
}

/// Applies a completion: a message is due once, and the first claim wins.
fn apply_completion(conn: &Connection, completion: &CompletionView<'_>) -> Result<()> {
    if is_gone(conn, &completion.session)? {
        return Ok(());
    }
    let (session, message) = (completion.session.as_ref(), completion.message.as_ref());
    match completion.taker.as_deref() {
        None => run(
            conn,
            "INSERT OR IGNORE INTO completions(session, message, turn) VALUES (?,?,?)",
            params![session, message, completion.turn.as_deref()],
        ),
        Some(taker) => run(
            conn,
            "UPDATE completions SET taker = ? WHERE session = ? AND message = ? AND taker IS NULL",
            params![taker, session, message],
        ),
    }
}

fn run(conn: &Connection, sql: &str, values: impl rusqlite::Params) -> Result<()> {
    conn.prepare_cached(sql)?.execute(values).map(|_| ())
}

/// Empties the projections and rebuilds them from the log. Returns the number of replayed rows.
pub(crate) fn rebuild(conn: &Connection) -> Result<u64> {
    for (table, _) in TABLES {
        conn.execute(&format!("DELETE FROM {table}"), [])?;
    }
    let mut statement = conn.prepare(
        "SELECT seq, at, kind, session, turn, body FROM log WHERE kind IN ('event', 'turn_step', 'completion') ORDER BY seq",
    )?;
    let mut rows = statement.query([])?;
    let mut count = 0;
    while let Some(found) = rows.next()? {
        let row = Row {
            at: found.get(1)?,
            kind: found.get(2)?,
            session: found.get(3)?,
            turn: found.get(4)?,
            body: found.get(5)?,
        };
        apply(conn, found.get(0)?, &row)?;
        count += 1;
    }
    Ok(count)
}

/// Returns every row of every projection as text, in a fixed order: equal projections give equal texts.
pub(crate) fn dump(conn: &Connection) -> Result<String> {
    use std::fmt::Write as _;
    let mut out = String::new();
    for (table, columns) in TABLES {
        let mut statement =
            conn.prepare(&format!("SELECT {columns} FROM {table} ORDER BY {columns}"))?;
        let width = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            out.push_str(table);
            for i in 0..width {
                let value: rusqlite::types::Value = row.get(i)?;
                let _ = write!(out, "|{value:?}");
            }
            out.push('\n');
        }
    }
    Ok(out)
}
