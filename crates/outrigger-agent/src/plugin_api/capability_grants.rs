//! Who does what tools do, and within what: what agents and plugins are granted, and what the user's settings hold tools to
//! (C11, D6, D7).

use outrigger_protocol::id::SessionId;

use crate::state::AgentState;

impl AgentState {
    /// The agents whose subagent that of a session is.
    pub(crate) fn callers_of(&self, session: &SessionId) -> Vec<String> {
        let stored = |id: &SessionId| self.store.session(id).ok().flatten();
        self.callers.of(stored, session)
    }
}

/// Holds the tools that are there to what the user's settings say.
pub(crate) fn narrow(inner: &AgentState) {
    let settings = &inner.config.settings.tool_execution;
    outrigger_contributions::grants::narrow_all(&inner.runtime, settings, |it| {
        inner.agents.contains_key(it)
    });
}
