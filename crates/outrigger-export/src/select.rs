//! Selects the exported sessions.

use std::collections::BTreeSet;

use outrigger_protocol::message::MessageWithParts;
use outrigger_protocol::session::Session;
use outrigger_store::{Store, StoreError};

/// Maximum number of sessions in one file.
const MAX_SESSIONS: usize = 1000;

/// A session with its messages, as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// The session.
    pub session: Session,
    /// Its messages, in order.
    pub messages: Vec<MessageWithParts>,
}

/// Returns a session, followed by those of its subagents if `children` is set, in order of their start.
///
/// # Errors
/// Those of the store.
pub fn select(store: &Store, session: Session, children: bool) -> Result<Vec<Stored>, StoreError> {
    let mut known = BTreeSet::new();
    let (mut waiting, mut selected) = (vec![session], Vec::new());
    while let Some(session) = waiting.pop() {
        if selected.len() >= MAX_SESSIONS || !known.insert(session.id.clone()) {
            continue;
        }
        if children {
            waiting.extend(store.children(&session.id)?.into_iter().rev());
        }
        let messages = store.messages(&session.id)?;
        selected.push(Stored { session, messages });
    }
    Ok(selected)
}
