//! `outrigger session`.

mod causes;
pub(crate) mod conversation;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod stored;

use std::path::Path;

use outrigger_agent::{ProjectLocation, budget_line, replay};
use outrigger_config::settings::Settings;
use outrigger_protocol::session::Session;
use outrigger_store::{ChainFault, SessionFilter, Store};

use self::conversation::conversation;
use self::stored::{find, of_place, open};
use crate::args::{Global, SessionCommand};
use crate::failure::Failure;
use crate::terminal::progress::Line;
use crate::terminal::{Paint, name, out};

/// Runs the command. Starts no plugin.
pub(crate) async fn session(global: &Global, command: SessionCommand) -> Result<u8, Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    if let SessionCommand::Salvage { into } = &command {
        let report = outrigger_store::salvage(&boot.folders.store(), into)?;
        out(&format!("{report}\n"));
        return Ok(0);
    }
    let location = ProjectLocation::find(&boot.directory);
    let store = open(&boot)?;
    match command {
        SessionCommand::List { all, json } => list(&store, &location, all, json),
        SessionCommand::Show { id } => {
            let config = boot.load(&location)?;
            show(&store, &find(&store, &location, id)?, &config.settings)
        }
        SessionCommand::Export { id } => {
            let session = find(&store, &location, id)?;
            let messages = store.messages(&session.id)?;
            let stored = outrigger_export::Stored { session, messages };
            out(&outrigger_export::opencode(stored).map_err(outrigger_export::ExportError::from)?);
            Ok(0)
        }
        SessionCommand::Delete { id } => {
            delete(
                &store,
                &boot.folders.data,
                &find(&store, &location, Some(id))?,
            )
            .await
        }
        SessionCommand::Verify { id, all } => verify(&store, &location, id, all),
        SessionCommand::Salvage { .. } => Ok(0),
    }
}

fn date(ms: u64) -> String {
    let time =
        jiff::Timestamp::from_millisecond(i64::try_from(ms).unwrap_or(0)).unwrap_or_default();
    time.to_zoned(jiff::tz::TimeZone::system())
        .strftime("%Y-%m-%d %H:%M")
        .to_string()
}

fn list(
    store: &Store,
    location: &ProjectLocation,
    all: bool,
    as_json: bool,
) -> Result<u8, Failure> {
    let sessions = if all {
        store.sessions(&SessionFilter {
            roots_only: true,
            ..SessionFilter::default()
        })?
    } else {
        of_place(store, location, None)?
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

fn show(store: &Store, session: &Session, settings: &Settings) -> Result<u8, Failure> {
    let paint = Paint::for_stdout();
    let used = store.session_usage(&session.id)?;
    let budget = budget_line(settings, &used).map(|line| format!("budget: {line}\n"));
    out(&format!(
        "{}  {}\n{}\n{}\n",
        session.id,
        name(&session.title),
        paint.dim(&name(&session.directory)),
        budget.unwrap_or_default()
    ));
    out(&conversation(store, session, paint)?);
    Ok(0)
}

async fn delete(store: &Store, data: &Path, session: &Session) -> Result<u8, Failure> {
    outrigger_agent::delete_session(store, data, &session.id).await?;
    out(&format!("deleted {}\n", session.id));
    Ok(0)
}

fn verify(
    store: &Store,
    location: &ProjectLocation,
    id: Option<String>,
    all: bool,
) -> Result<u8, Failure> {
    let sessions = match id {
        Some(id) => vec![find(store, location, Some(id))?],
        None if all => store.sessions(&SessionFilter {
            roots_only: true,
            ..SessionFilter::default()
        })?,
        None => of_place(store, location, None)?,
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
            match fault {
                ChainFault::Changed => format!("record {seq} of the log was changed"),
                ChainFault::Unlinked => format!(
                    "record {seq} of the log does not follow the one before it: one was removed, put in or changed"
                ),
            },
            None,
        ));
    }
    out(&format!(
        "{turns} turns, {steps} steps replay to the recorded effects; {} records, hash chain intact\n",
        chain.rows
    ));
    Ok(0)
}
