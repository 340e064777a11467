//! Whether an agent can make room for another one: nobody is at work in it, and nobody begins to be from then on.

use std::sync::Arc;

use crate::state::{Agent, AgentState};

/// Somebody is at work in an agent: it is not retired meanwhile.
pub struct Working(Arc<AgentState>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.turns.end_work();
    }
}

impl Agent {
    /// Begins work in it, for as long as the value is held. `None` when it was retired: another one is or will be there.
    #[must_use]
    pub fn begin_work(&self) -> Option<Working> {
        let inner = &self.inner;
        inner.turns.begin_work().then(|| Working(Arc::clone(inner)))
    }

    /// Retires it, unless there is a turn, a request, a terminal, a login or work beside the turns in it. Nothing begins in
    /// it from then on; the caller shuts it down.
    #[must_use]
    pub fn retire(&self) -> bool {
        let inner = &self.inner;
        inner.turns.retire(|| {
            inner.waiting.is_empty()
                && inner.ptys.is_empty()
                && inner.background.is_quiet()
                && inner.waiting_logins.is_empty()
        })
    }

    /// Plugins that are out of the run until somebody resumes them: first those that need others.
    #[must_use]
    pub fn suspended_plugins(&self) -> Vec<String> {
        self.inner.plugins.suspended()
    }
}
