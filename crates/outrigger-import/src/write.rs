//! Into the store's log, as everything that is said in a session.

use outrigger_protocol::Millis;
use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::id::{IdMaker, SessionId};
use outrigger_protocol::log::LogRecord;
use outrigger_store::{Store, StoreError};

use crate::accept::Accepted;

/// What became of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is in the store now.
    Imported(SessionId),
    /// It was there already; nothing was changed.
    There(SessionId),
}

/// Stores a session with its messages in one transaction, unless a session with its identifier is there.
///
/// # Errors
/// Those of the store; then nothing of it is there.
pub async fn write(store: &Store, accepted: Accepted, at: Millis) -> Result<Outcome, StoreError> {
    let id = accepted.session.id.clone();
    if store.session(&id)?.is_some() {
        return Ok(Outcome::There(id));
    }
    let seed = id
        .as_str()
        .bytes()
        .fold(at, |seed, byte| seed.rotate_left(5) ^ u64::from(byte));
    let mut maker = IdMaker::new(seed);
    let records = events(accepted, at).into_iter().map(|event| {
        LogRecord::Event(Box::new(BusEvent {
            id: maker.event(at),
            event,
        }))
    });
    store.append(at, records.collect()).await?;
    Ok(Outcome::Imported(id))
}

fn events(accepted: Accepted, at: Millis) -> Vec<Event> {
    let Accepted { session, messages } = accepted;
    let session_id = session.id.clone();
    let mut events = vec![Event::SessionCreated {
        session_id: session_id.clone(),
        info: Box::new(session),
    }];
    for message in messages {
        events.push(Event::MessageUpdated {
            session_id: session_id.clone(),
            info: Box::new(message.info),
        });
        let parts = message.parts.into_iter().map(|part| Event::PartUpdated {
            session_id: session_id.clone(),
            part: Box::new(part),
            time: at,
        });
        events.extend(parts);
    }
    events
}
