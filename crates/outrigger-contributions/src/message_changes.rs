//! Messages that plugins change while a turn reads them.

use std::collections::HashMap;
use std::sync::Mutex;

use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::MessageInfo;
use outrigger_protocol::provenance::{Cause, Provenance};
use outrigger_stdx::sync::lock;

/// Changes by plugins to messages while a turn runs in their session. The turn was started without these causes, and
/// publishes its own copy of the message.
#[derive(Debug, Default)]
pub struct MessageChanges(Mutex<HashMap<SessionId, Vec<(MessageId, Cause)>>>);

impl MessageChanges {
    /// Records that a plugin changed a message.
    pub fn add(&self, session: &SessionId, message: &MessageId, cause: Cause) {
        let mut changes = lock(&self.0);
        let causes = changes.entry(session.clone()).or_default();
        let new = (message.clone(), cause);
        if !causes.contains(&new) {
            causes.push(new);
        }
    }

    /// Returns who changed messages that the running turn of a session reads.
    #[must_use]
    pub fn causes(&self, session: &SessionId) -> Provenance {
        let mut causes = Provenance::default();
        for (_, cause) in lock(&self.0).get(session).into_iter().flatten() {
            causes.push(cause.clone());
        }
        causes
    }

    /// Adds those who changed a message meanwhile to a turn's copy of it.
    pub fn complete(&self, info: &mut MessageInfo) {
        let (session, id, provenance) = match info {
            MessageInfo::User(it) => (&it.session_id, &it.id, &mut it.provenance),
            MessageInfo::Assistant(it) => (&it.session_id, &it.id, &mut it.provenance),
        };
        let changes = lock(&self.0);
        let of_session = changes.get(session).into_iter().flatten();
        for (_, cause) in of_session.filter(|(message, _)| message == id) {
            provenance.push(cause.clone());
        }
    }

    /// Ends a turn: later ones read the causes from the messages.
    pub fn end(&self, session: &SessionId) {
        lock(&self.0).remove(session);
    }
}
