//! Status of sessions on request; listeners are notified by events.

use std::collections::BTreeMap;

use outrigger_protocol::id::SessionId;
use outrigger_protocol::session::SessionStatus;

use crate::state::Agent;

impl Agent {
    /// Returns the status of the sessions with a running turn: busy, or waiting for a retry. All others are idle.
    #[must_use]
    pub fn statuses(&self) -> BTreeMap<SessionId, SessionStatus> {
        self.state.sessions.turns.statuses()
    }
}
