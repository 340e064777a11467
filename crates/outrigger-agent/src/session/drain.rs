//! Draining an agent to make room for another: it has no work, and none can start from then on.

use std::sync::Arc;

use crate::state::{Agent, AgentState};

/// Marks an agent as in use, so that it is not retired.
pub struct Working(Arc<AgentState>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.sessions.turns.end_work();
    }
}

impl Agent {
    /// Starts work in the agent; it lasts as long as the returned value. `None` if the agent was retired: another one
    /// replaces it.
    #[must_use]
    pub fn begin_work(&self) -> Option<Working> {
        let state = &self.state;
        state
            .sessions
            .turns
            .begin_work()
            .then(|| Working(Arc::clone(state)))
    }

    /// Retires the agent, unless it has a turn, a request, a terminal, a login or background work. No work can start from
    /// then on; the caller shuts it down.
    #[must_use]
    pub fn retire(&self) -> bool {
        let state = &self.state;
        state.sessions.turns.retire(|| {
            state.sessions.queue.is_empty()
                && state.tools.terminals.is_empty()
                && state.background.is_quiet()
                && state.logins.waiting.is_empty()
        })
    }

    /// Returns the plugins that are suspended until the user resumes them: dependents first.
    #[must_use]
    pub fn suspended_plugins(&self) -> Vec<String> {
        self.state.plugins.host.suspended()
    }
}
