//! Messages that plugins change while a turn reads them.

use std::collections::HashMap;
use std::sync::Mutex;

use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::MessageInfo;
use outrigger_protocol::provenance::{Cause, Provenance};
use outrigger_workspace::sync::lock;

/// What plugins changed of messages while a turn runs in their session. The turn was begun without these causes, and
/// publishes its own copy of the message.
#[derive(Debug, Default)]
pub struct MessageChanges(Mutex<HashMap<SessionId, Vec<(MessageId, Cause)>>>);

impl MessageChanges {
    /// A plugin changed a message.
    pub fn add(&self, session: &SessionId, message: &MessageId, cause: Cause) {
        let mut changes = lock(&self.0);
        let causes = changes.entry(session.clone()).or_default();
        let new = (message.clone(), cause);
        if !causes.contains(&new) {
            causes.push(new);
        }
    }

    /// Who changed messages that the running turn of a session reads.
    #[must_use]
    pub fn causes(&self, session: &SessionId) -> Provenance {
        let mut causes = Provenance::default();
        for (_, cause) in lock(&self.0).get(session).into_iter().flatten() {
            causes.push(cause.clone());
        }
        causes
    }

    /// A message that a turn publishes, with who changed it meanwhile.
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

    /// The turn is over: later ones read the causes from the messages.
    pub fn end(&self, session: &SessionId) {
        lock(&self.0).remove(session);
    }
}
