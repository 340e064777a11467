//! Capabilities of agents and plugins: what they are granted, and the limits that the user's settings set for tools (C11,
//! D6, D7).

use outrigger_protocol::id::SessionId;

use crate::state::AgentState;

impl AgentState {
    /// Returns the chain of parent agents of a session's agent.
    pub(crate) fn callers_of(&self, session: &SessionId) -> Vec<String> {
        let stored = |id: &SessionId| self.store.session(id).ok().flatten();
        self.permissions.callers.of(stored, session)
    }
}

/// Limits the registered tools to what the user's settings allow.
pub(crate) fn narrow(state: &AgentState) {
    let settings = &state.config.settings.tool_execution;
    outrigger_contributions::grants::narrow_all(&state.tools.runtime, settings, |it| {
        state.catalog.agents.contains_key(it)
    });
}
