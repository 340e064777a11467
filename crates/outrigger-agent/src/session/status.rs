//! What sessions are doing, for whoever asks; whoever listens is told by events.

use std::collections::BTreeMap;

use outrigger_protocol::id::SessionId;
use outrigger_protocol::session::SessionStatus;
use outrigger_workspace::sync::lock;

use crate::state::{Agent, Inner};

impl Agent {
    /// What the sessions do in which a turn runs: they are busy, or wait to send a request again. The others are idle.
    #[must_use]
    pub fn statuses(&self) -> BTreeMap<SessionId, SessionStatus> {
        let retrying = lock(&self.inner.retrying).clone();
        lock(&self.inner.running)
            .keys()
            .map(|id| {
                let status = retrying.get(id).cloned();
                (id.clone(), status.unwrap_or(SessionStatus::Busy))
            })
            .collect()
    }
}

impl Inner {
    /// A model request failed and waits to be sent again.
    pub(crate) fn waits_to_retry(&self, id: &SessionId, status: SessionStatus) {
        lock(&self.retrying).insert(id.clone(), status);
    }

    /// The model answers, or its request is given up, or the turn is over.
    pub(crate) fn retries_no_more(&self, id: &SessionId) {
        lock(&self.retrying).remove(id);
    }
}
