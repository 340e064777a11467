//! Finds what is new in an imported session that was continued in its original program.
//!
//! Identifiers are derived from the position in the transcript, so that imported messages are found again. Their number is stored with
//! the session: one that was removed here since is not new. Messages of our own export are those of the session itself:
//! [`alignment`](crate::alignment).

use std::collections::BTreeMap;

use outrigger_protocol::Millis;
use outrigger_protocol::event::Event;
use outrigger_protocol::message::{MessageInfo, MessageWithParts, Part, PartKind, ToolState};
use outrigger_protocol::session::Session;
use serde_json::{Value, json};

use crate::accept::{Accepted, IMPORTED_MESSAGES, note};
use crate::alignment::{self, Alignment};
use crate::parts::{NOT_ENDED, UNMATCHED};
use crate::write::{Outcome, of_message};

/// A stored session.
pub(crate) struct Growth {
    session: Session,
    stored: BTreeMap<String, MessageWithParts>,
    at: Millis,
}

impl Growth {
    pub(crate) fn of(session: Session, stored: Vec<MessageWithParts>, at: Millis) -> Self {
        let stored = stored
            .into_iter()
            .map(|it| (it.info.id().as_str().to_owned(), it));
        Self {
            session,
            stored: stored.collect(),
            at,
        }
    }

    /// Returns the result of a repeated import.
    pub(crate) fn with(self, accepted: Accepted) -> (Outcome, Vec<Event>) {
        let id = self.session.id.clone();
        let noted = match alignment::of(&self.stored, &accepted) {
            Alignment::Positions => self.known(&accepted),
            Alignment::Own(known) => return self.with_own(accepted, known),
            Alignment::Differs => return (Outcome::Differs(id), Vec::new()),
        };
        // An earlier export of ours is short; a shorter file of another program is another conversation.
        let known = match accepted.exported.as_slice() {
            [] => noted,
            exported => noted.min(exported.len()),
        };
        let mut read = accepted.messages;
        if self.differs(&read, known) {
            return (Outcome::Differs(id), Vec::new());
        }
        let count = read.len();
        let new = read.split_off(known);
        let mut events = Vec::new();
        let mut parts = 0;
        for message in read {
            let more = self.more(message);
            parts += more
                .iter()
                .filter(|it| matches!(it, Event::PartUpdated { .. }))
                .count();
            events.extend(more);
        }
        let messages = new.len();
        events.extend(new.into_iter().flat_map(|it| of_message(it, self.at)));
        if events.is_empty() {
            return (Outcome::There(id), events);
        }
        let mut session = self.session;
        session.time.updated = session.time.updated.max(accepted.session.time.updated);
        session.metadata = note(session.metadata, count.max(noted));
        events.push(Event::SessionUpdated {
            session_id: id.clone(),
            info: Box::new(session),
        });
        (
            Outcome::Grown {
                id,
                messages,
                parts,
            },
            events,
        )
    }

    /// Returns the result for an export of this very session: what follows the known messages comes after everything that is here.
    fn with_own(self, accepted: Accepted, known: usize) -> (Outcome, Vec<Event>) {
        let id = self.session.id.clone();
        let new = alignment::following(&self.stored, accepted.messages, known);
        if new.is_empty() {
            return (Outcome::There(id), Vec::new());
        }
        let messages = new.len();
        let mut events: Vec<Event> = new
            .into_iter()
            .flat_map(|it| of_message(it, self.at))
            .collect();
        let mut session = self.session;
        session.time.updated = session.time.updated.max(accepted.session.time.updated);
        events.push(Event::SessionUpdated {
            session_id: id.clone(),
            info: Box::new(session),
        });
        let parts = 0;
        (
            Outcome::Grown {
                id,
                messages,
                parts,
            },
            events,
        )
    }

    /// Returns how many messages were imported.
    fn known(&self, accepted: &Accepted) -> usize {
        let noted = self
            .session
            .metadata
            .as_ref()
            .and_then(|it| it.get(IMPORTED_MESSAGES))
            .and_then(Value::as_u64)
            .and_then(|it| usize::try_from(it).ok());
        let read = &accepted.messages;
        let last = || {
            read.iter()
                .rposition(|it| self.stored.contains_key(it.info.id().as_str()))
        };
        noted.unwrap_or_else(|| last().map_or(0, |at| at + 1))
    }

    /// Returns whether the imported messages differ from the start of the current ones.
    fn differs(&self, read: &[MessageWithParts], known: usize) -> bool {
        let known = read.get(..known);
        known.is_none_or(|known| {
            let is_same = |message: &&MessageWithParts| {
                let stored = self.stored.get(message.info.id().as_str());
                stored.is_none_or(|stored| begun(&stored.info) == begun(&message.info))
            };
            !known.iter().all(|it| is_same(&it))
        })
    }

    /// Returns new parts of an imported message, and those of its calls that had not ended then.
    fn more(&self, message: MessageWithParts) -> Vec<Event> {
        let Some(stored) = self.stored.get(message.info.id().as_str()) else {
            return Vec::new();
        };
        let last = stored.parts.iter().map(|it| &it.id).max();
        let is_new = |part: &Part| match stored.parts.iter().find(|it| it.id == part.id) {
            Some(known) => had_not_ended(known) && !had_not_ended(part),
            None => last.is_none_or(|last| part.id > *last),
        };
        let MessageWithParts { info, parts } = message;
        let parts: Vec<Part> = parts.into_iter().filter(is_new).collect();
        if parts.is_empty() {
            Vec::new()
        } else {
            of_message(MessageWithParts { info, parts }, self.at)
        }
    }
}

/// Returns the author and the time: both differ for a message at another position.
fn begun(info: &MessageInfo) -> (bool, Millis) {
    match info {
        MessageInfo::User(user) => (true, user.time.created),
        MessageInfo::Assistant(answer) => (false, answer.time.created),
    }
}

fn had_not_ended(part: &Part) -> bool {
    match &part.kind {
        PartKind::Tool(call) => {
            let has_no_result = call.extra.get(UNMATCHED) == Some(&json!("start"));
            let was_running =
                matches!(&call.state, ToolState::Error { error, .. } if error == NOT_ENDED);
            has_no_result || was_running
        }
        _ => false,
    }
}
