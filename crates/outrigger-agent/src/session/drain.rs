//! Whether an agent can be put aside for another one: nobody is at work in it, and nobody begins to be from then on.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outrigger_protocol::id::SessionId;
use outrigger_workspace::sync::lock;
use tokio::sync::watch;

use crate::error::AgentError;
use crate::state::{Agent, Inner};

/// A login that nobody came back to for so long is given up.
const LOGIN: Duration = Duration::from_secs(15 * 60);

/// Somebody is at work in an agent: it is not put aside meanwhile.
pub struct Working(Arc<Inner>);

impl Drop for Working {
    fn drop(&mut self) {
        let _running = lock(&self.0.running);
        self.0.at_work.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Agent {
    /// Begins work in it, for as long as the value is held. `None` when it was put aside: another one is or will be there.
    #[must_use]
    pub fn begin_work(&self) -> Option<Working> {
        let _running = lock(&self.inner.running);
        if self.inner.retired.load(Ordering::SeqCst) {
            return None;
        }
        self.inner.at_work.fetch_add(1, Ordering::SeqCst);
        Some(Working(Arc::clone(&self.inner)))
    }

    /// Puts it aside, unless there is a turn, a request, a terminal, a login or work beside the turns in it. Nothing begins in
    /// it from then on; the caller shuts it down.
    #[must_use]
    pub fn retire(&self) -> bool {
        let inner = &self.inner;
        let running = lock(&inner.running);
        let idle = running.is_empty()
            && inner.at_work.load(Ordering::SeqCst) == 0
            && inner.waiting.is_empty()
            && inner.ptys.is_empty()
            && inner.background.is_quiet()
            && inner.waiting_logins.is_empty();
        if idle {
            inner.retired.store(true, Ordering::SeqCst);
        }
        idle
    }

    /// Plugins that are out of the run until somebody resumes them: first those that need others.
    #[must_use]
    pub fn suspended_plugins(&self) -> Vec<String> {
        self.inner.plugins.suspended()
    }
}

/// Logins that wait for their user, each with its beginning.
#[derive(Default)]
pub(crate) struct WaitingLogins(Mutex<BTreeMap<(LoginAt, String), Instant>>);

/// Where somebody logs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LoginAt {
    Provider,
    McpServer,
}

impl WaitingLogins {
    /// One waits from now on.
    pub(crate) fn begin(&self, at: LoginAt, name: &str) {
        lock(&self.0).insert((at, name.to_owned()), Instant::now());
    }

    /// It does not wait any more; others may.
    pub(crate) fn end(&self, at: LoginAt, name: &str) {
        lock(&self.0).remove(&(at, name.to_owned()));
    }

    fn is_empty(&self) -> bool {
        let mut waiting = lock(&self.0);
        waiting.retain(|_, begun| begun.elapsed() <= LOGIN);
        waiting.is_empty()
    }
}

impl Inner {
    /// Puts a session on the list of running ones.
    ///
    /// # Errors
    /// [`AgentError::Lost`] when the agent was put aside.
    pub(crate) fn runs(
        &self,
        id: &SessionId,
        cancel: watch::Sender<bool>,
    ) -> Result<(), AgentError> {
        let mut running = lock(&self.running);
        if self.retired.load(Ordering::SeqCst) {
            return Err(AgentError::Lost(
                "the folder's plugins are loaded anew; send it again".to_owned(),
            ));
        }
        running.insert(id.clone(), cancel);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_one_login_leaves_the_others_waiting() {
        let waiting = WaitingLogins::default();
        waiting.begin(LoginAt::Provider, "a");
        waiting.begin(LoginAt::McpServer, "a");
        waiting.end(LoginAt::Provider, "a");
        waiting.end(LoginAt::Provider, "b");
        assert!(!waiting.is_empty());
        waiting.end(LoginAt::McpServer, "a");
        assert!(waiting.is_empty());
    }
}
