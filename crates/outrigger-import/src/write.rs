//! Writes sessions to the store's log, as if their messages were written here.

use outrigger_protocol::Millis;
use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::id::{IdMaker, SessionId};
use outrigger_protocol::log::LogRecord;
use outrigger_protocol::message::MessageWithParts;
use outrigger_store::{Store, StoreError};

use crate::accept::Accepted;
use crate::growth::Growth;

/// The result of importing a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was stored.
    Imported(SessionId),
    /// It existed already and was continued in its original program: the new part was stored.
    Grown {
        /// The session.
        id: SessionId,
        /// Number of new messages.
        messages: usize,
        /// Number of new parts of earlier messages, and of calls that have ended since.
        parts: usize,
    },
    /// It existed already; nothing was changed.
    There(SessionId),
    /// It existed already, but the original is a different conversation now; nothing was changed.
    Differs(SessionId),
    /// It existed already, as a session of another folder; nothing was changed.
    Elsewhere {
        /// The session.
        id: SessionId,
        /// The folder.
        directory: String,
    },
}

/// Returns what [`write`] would do.
///
/// # Errors
/// Those of the store.
pub fn outlook(store: &Store, accepted: &Accepted) -> Result<Outcome, StoreError> {
    plan(store, accepted.clone(), 0).map(|(outcome, _)| outcome)
}

/// Stores a session with its messages in one transaction. For an existing one, adds what is new since the last import; changes made here
/// are kept.
///
/// # Errors
/// Those of the store; then nothing was stored.
pub async fn write(store: &Store, accepted: Accepted, at: Millis) -> Result<Outcome, StoreError> {
    let id = accepted.session.id.clone();
    let (outcome, events) = plan(store, accepted, at)?;
    if events.is_empty() {
        return Ok(outcome);
    }
    let seed = id
        .as_str()
        .bytes()
        .fold(at, |seed, byte| seed.rotate_left(5) ^ u64::from(byte));
    let mut maker = IdMaker::new(seed);
    let records = events.into_iter().map(|event| {
        LogRecord::Event(Box::new(BusEvent {
            id: maker.event(at),
            event,
        }))
    });
    store.append(at, records.collect()).await?;
    Ok(outcome)
}

fn plan(
    store: &Store,
    accepted: Accepted,
    at: Millis,
) -> Result<(Outcome, Vec<Event>), StoreError> {
    let id = accepted.session.id.clone();
    match store.session(&id)? {
        // A file says which session it is of. An import into one folder does not change the sessions of another.
        Some(session) if session.directory != accepted.session.directory => {
            let directory = session.directory;
            Ok((Outcome::Elsewhere { id, directory }, Vec::new()))
        }
        Some(session) => Ok(Growth::of(session, store.messages(&id)?, at).with(accepted)),
        None => Ok((Outcome::Imported(id), events(accepted, at))),
    }
}

fn events(accepted: Accepted, at: Millis) -> Vec<Event> {
    let Accepted {
        session, messages, ..
    } = accepted;
    let session_id = session.id.clone();
    let mut events = vec![Event::SessionCreated {
        session_id: session_id.clone(),
        info: Box::new(session),
    }];
    for message in messages {
        events.extend(of_message(message, at));
    }
    events
}

pub(crate) fn of_message(message: MessageWithParts, at: Millis) -> Vec<Event> {
    let session_id = message.info.session_id().clone();
    let mut events = vec![Event::MessageUpdated {
        session_id: session_id.clone(),
        info: Box::new(message.info),
    }];
    let parts = message.parts.into_iter().map(|part| Event::PartUpdated {
        session_id: session_id.clone(),
        part: Box::new(part),
        time: at,
    });
    events.extend(parts);
    events
}
