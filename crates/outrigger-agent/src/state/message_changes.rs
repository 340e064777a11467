//! Messages of the user that plugins change while a turn reads them.

use std::collections::HashMap;
use std::sync::Mutex;

use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::UserMessage;
use outrigger_protocol::provenance::{Cause, Provenance};
use outrigger_workspace::sync::lock;

/// What plugins changed of the user's messages while a turn runs in their session. The turn was begun without these causes, and
/// publishes its own copy of the message.
#[derive(Default)]
pub(crate) struct MessageChanges(Mutex<HashMap<SessionId, Vec<(MessageId, Cause)>>>);

impl MessageChanges {
    pub(crate) fn add(&self, session: &SessionId, message: &MessageId, cause: Cause) {
        let mut changes = lock(&self.0);
        let causes = changes.entry(session.clone()).or_default();
        let new = (message.clone(), cause);
        if !causes.contains(&new) {
            causes.push(new);
        }
    }

    /// Who changed messages that the running turn of a session reads.
    pub(crate) fn causes(&self, session: &SessionId) -> Provenance {
        let mut causes = Provenance::default();
        for (_, cause) in lock(&self.0).get(session).into_iter().flatten() {
            causes.push(cause.clone());
        }
        causes
    }

    /// A message that a turn publishes, with who changed it meanwhile.
    pub(crate) fn complete(&self, user: &mut UserMessage) {
        let changes = lock(&self.0);
        let of_session = changes.get(&user.session_id).into_iter().flatten();
        for (_, cause) in of_session.filter(|(message, _)| *message == user.id) {
            user.provenance.push(cause.clone());
        }
    }

    /// The turn is over: later ones read the causes from the messages.
    pub(crate) fn end(&self, session: &SessionId) {
        lock(&self.0).remove(session);
    }
}
