//! `outrigger session`.

use std::path::Path;

use outrigger_agent::{Boot, Place, replay};
use outrigger_kernel::merge::{Conversation, merge_all};
use outrigger_protocol::event::Event;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::log::LogRecord;
use outrigger_protocol::session::Session;
use outrigger_store::{RecordQuery, Scope, SessionFilter, Store};
use serde_json::json;

use crate::args::{Global, SessionCommand};
use crate::causes::Causes;
use crate::progress::Line;
use crate::report::Failure;
use crate::terminal::name;
use crate::told::{is_tool, tool_text};
use crate::view::{Paint, out};

/// Runs the command. No plugin is started for it.
pub(crate) async fn session(global: &Global, command: SessionCommand) -> Result<u8, Failure> {
    let boot = crate::run::boot(global, &Line::new())?;
    if let SessionCommand::Salvage { into } = &command {
        let report = outrigger_store::salvage(&boot.folders.store(), into)?;
        out(&format!("{report}\n"));
        return Ok(0);
    }
    let place = Place::find(&boot.directory);
    let store = open(&boot)?;
    match command {
        SessionCommand::List { all, json } => list(&store, &place, all, json),
        SessionCommand::Show { id } => show(&store, &find(&store, &place, id)?),
        SessionCommand::Export { id } => {
            let session = find(&store, &place, id)?;
            let messages = store.messages(&session.id)?;
            let text =
                serde_json::to_string_pretty(&json!({ "info": session, "messages": messages }))
                    .unwrap_or_default();
            out(&format!("{text}\n"));
            Ok(0)
        }
        SessionCommand::Delete { id } => {
            delete(&store, &boot.folders.data, &find(&store, &place, Some(id))?).await
        }
        SessionCommand::Verify { id, all } => verify(&store, &place, id, all),
        SessionCommand::Salvage { .. } => Ok(0),
    }
}

pub(crate) fn open(boot: &Boot) -> Result<Store, Failure> {
    let path = boot.folders.store();
    if !path.exists() {
        return Err(Failure::new(
            "store.none",
            format!("there is no store at {} yet", path.display()),
            Some("the first `outrigger run` makes it".into()),
        ));
    }
    Ok(Store::open(&path)?.0)
}

fn of_place(store: &Store, place: &Place, limit: Option<usize>) -> Result<Vec<Session>, Failure> {
    let directory = Some(place.directory.to_string_lossy().into_owned());
    Ok(store.sessions(&SessionFilter {
        directory,
        roots_only: true,
        limit,
        ..SessionFilter::default()
    })?)
}

/// The session of that id, else the latest one of the folder.
pub(crate) fn find(store: &Store, place: &Place, id: Option<String>) -> Result<Session, Failure> {
    let found = match &id {
        Some(id) => store.session(&SessionId(id.clone()))?,
        None => of_place(store, place, Some(1))?.into_iter().next(),
    };
    found.ok_or_else(|| match id {
        Some(id) => outrigger_agent::AgentError::NoSession(id).into(),
        None => Failure::new(
            "agent.no_session",
            format!("there is no session in {} yet", place.directory.display()),
            None,
        ),
    })
}

fn date(ms: u64) -> String {
    let time =
        jiff::Timestamp::from_millisecond(i64::try_from(ms).unwrap_or(0)).unwrap_or_default();
    time.to_zoned(jiff::tz::TimeZone::system())
        .strftime("%Y-%m-%d %H:%M")
        .to_string()
}

fn list(store: &Store, place: &Place, all: bool, as_json: bool) -> Result<u8, Failure> {
    let sessions = if all {
        store.sessions(&SessionFilter {
            roots_only: true,
            ..SessionFilter::default()
        })?
    } else {
        of_place(store, place, None)?
    };
    if as_json {
        out(&format!(
            "{}\n",
            serde_json::to_string_pretty(&sessions).unwrap_or_default()
        ));
        return Ok(0);
    }
    for session in sessions {
        let folder = if all {
            format!("  {}", name(&session.directory))
        } else {
            String::new()
        };
        out(&format!(
            "{}  {}  {}{folder}\n",
            session.id,
            date(session.time.updated),
            name(&session.title)
        ));
    }
    Ok(0)
}

/// The stored events of a session, in the order of the log.
fn events(store: &Store, id: &SessionId) -> Result<Vec<Event>, Failure> {
    let query = RecordQuery {
        scope: Some(Scope::Session(id)),
        kind: Some("event"),
        ..RecordQuery::default()
    };
    let records = store.records(&query)?;
    Ok(records
        .into_iter()
        .filter_map(|stored| match stored.record {
            LogRecord::Event(event) => Some(event.event),
            _ => None,
        })
        .collect())
}

fn show(store: &Store, session: &Session) -> Result<u8, Failure> {
    let paint = Paint::for_stdout();
    out(&format!(
        "{}  {}\n{}\n\n",
        session.id,
        name(&session.title),
        paint.dim(&name(&session.directory))
    ));
    out(&conversation(store, session, paint)?);
    Ok(0)
}

/// A session's conversation, made again from its stored events.
pub(crate) fn conversation(
    store: &Store,
    session: &Session,
    paint: Paint,
) -> Result<String, Failure> {
    let mut text = String::new();
    let mut conversation = Conversation::default();
    let events = events(store, &session.id)?;
    let causes = Causes::of(store, &session.id, &events)?;
    let messages: Vec<_> = events
        .iter()
        .flat_map(|event| conversation.on(event))
        .collect();
    let mut merged = merge_all(messages);
    // The log has what became final first; identifiers are in the order in which the model said it.
    merged.sort_by(|a, b| a.id.cmp(&b.id));
    // A text and the call that it announces belong together, and so do calls that have no more than a line to tell.
    let mut together = true;
    for message in merged {
        let is_tool = is_tool(&message);
        let told = match message.role.as_str() {
            _ if is_tool => tool_text(&message, paint, &session.directory),
            "user" => format!("{} {}\n", paint.bold(">"), message.content),
            _ if message.content.trim().is_empty() => continue,
            _ => format!("{}\n", message.content),
        };
        let told = told + &causes.line(&message, paint);
        let close = text.is_empty() || is_tool && together;
        if !close {
            text.push('\n');
        }
        together = message.role != "user" && (!is_tool || told.lines().count() == 1);
        text.push_str(&told);
    }
    Ok(text)
}

async fn delete(store: &Store, data: &Path, session: &Session) -> Result<u8, Failure> {
    outrigger_agent::delete_session(store, data, &session.id).await?;
    out(&format!("deleted {}\n", session.id));
    Ok(0)
}

fn verify(store: &Store, place: &Place, id: Option<String>, all: bool) -> Result<u8, Failure> {
    let sessions = match id {
        Some(id) => vec![find(store, place, Some(id))?],
        None if all => store.sessions(&SessionFilter {
            roots_only: true,
            ..SessionFilter::default()
        })?,
        None => of_place(store, place, None)?,
    };
    let (mut turns, mut steps) = (0, 0);
    let mut queue = sessions;
    while let Some(session) = queue.pop() {
        queue.extend(store.children(&session.id)?);
        for turn in store.last_turns(&session.id, usize::MAX)? {
            steps += replay(store, &turn.turn)?.steps;
            turns += 1;
        }
    }
    let chain = store.verify_chain()?;
    if let Some((seq, fault)) = chain.faults.first() {
        return Err(Failure::new(
            "store.chain",
            format!("record {seq} of the log is not what was written: {fault:?}"),
            None,
        ));
    }
    out(&format!(
        "{turns} turns, {steps} steps replay to the recorded effects; {} records, hash chain intact\n",
        chain.rows
    ));
    Ok(0)
}
