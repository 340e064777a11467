//! What sessions are doing, for who asks; who listens is notified by events.

use std::collections::BTreeMap;

use outrigger_protocol::id::SessionId;
use outrigger_protocol::session::SessionStatus;

use crate::state::Agent;

impl Agent {
    /// What the sessions do in which a turn runs: they are busy, or wait to send a request again. The others are idle.
    #[must_use]
    pub fn statuses(&self) -> BTreeMap<SessionId, SessionStatus> {
        self.inner.turns.statuses()
    }
}
