//! Whether an agent can be put aside for another one: nobody is at work in it, and nobody begins to be from then on.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use outrigger_protocol::id::SessionId;
use tokio::sync::watch;

use crate::error::AgentError;
use crate::inner::{Agent, Inner, lock};

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
            && lock(&inner.login_begun).is_none_or(|begun| begun.elapsed() > LOGIN);
        if idle {
            inner.retired.store(true, Ordering::SeqCst);
        }
        idle
    }

    /// Plugins that are out of the run until somebody resumes them.
    #[must_use]
    pub fn suspended_plugins(&self) -> Vec<String> {
        let all = self.plugins().into_iter();
        let suspended = all.filter(|plugin| plugin.stage == outrigger_plugins::Stage::Suspended);
        suspended.map(|plugin| plugin.id).collect()
    }
}

impl Inner {
    /// A login waits for its user from now on.
    pub(crate) fn login_begins(&self) {
        *lock(&self.login_begun) = Some(Instant::now());
    }

    /// No login waits any more.
    pub(crate) fn login_ended(&self) {
        *lock(&self.login_begun) = None;
    }

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
