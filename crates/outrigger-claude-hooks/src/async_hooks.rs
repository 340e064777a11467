//! Async commands (`"async": true`): the chain does not wait for their answer. Their output is read with the next
//! prompt or tool result, and their decisions come too late to apply.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_stdx::sync::lock;
use tokio::task::JoinSet;

use crate::answer::Answer;

/// Maximum number of concurrent ones: each event of a session may start one, and nothing else limits them.
const MAX_RUNNING: usize = 32;
/// Maximum number of texts that wait to be read; the oldest are dropped first.
const MAX_TEXTS: usize = 256;

/// Running async commands, and the output of those that have ended.
#[derive(Default)]
pub(crate) struct AsyncHooks {
    running: Mutex<JoinSet<()>>,
    texts: Arc<Mutex<VecDeque<HookText>>>,
}

struct HookText {
    session: String,
    text: String,
    /// The session continues with it.
    wakes: bool,
}

impl AsyncHooks {
    /// Starts one; returns false if too many are running.
    pub(crate) fn start(
        &self,
        session: String,
        event: &'static str,
        run: impl Future<Output = Answer> + Send + 'static,
        report: impl FnOnce(String) + Send + Clone + 'static,
    ) -> bool {
        let mut running = lock(&self.running);
        while running.try_join_next().is_some() {}
        if running.len() >= MAX_RUNNING {
            return false;
        }
        let texts = Arc::clone(&self.texts);
        running.spawn(async move {
            let answer = run.await;
            for text in &answer.context {
                let mut texts = lock(&texts);
                if texts.len() >= MAX_TEXTS {
                    texts.pop_front();
                }
                texts.push_back(HookText {
                    session: session.clone(),
                    text: format!("[{event} hook] {text}"),
                    wakes: answer.wakes,
                });
            }
            for message in messages(&answer) {
                report.clone()(message);
            }
        });
        true
    }

    /// Takes the texts for a session since the last call.
    pub(crate) fn take(&self, session: &str) -> Vec<String> {
        let mut texts = lock(&self.texts);
        let (taken, left) = texts.drain(..).partition(|said| said.session == session);
        *texts = left;
        let taken: VecDeque<HookText> = taken;
        taken.into_iter().map(|said| said.text).collect()
    }

    /// Like [`Self::take`], if one of the texts makes the session continue; `None` otherwise.
    pub(crate) fn take_waking(&self, session: &str) -> Vec<String> {
        let wakes = |said: &HookText| said.wakes && said.session == session;
        let any = lock(&self.texts).iter().any(wakes);
        if any { self.take(session) } else { Vec::new() }
    }

    /// Waits for running commands, and kills them at the deadline.
    pub(crate) async fn end(&self, deadline: Duration) {
        let mut running = std::mem::take(&mut *lock(&self.running));
        let all = async { while running.join_next().await.is_some() {} };
        if outrigger_sandbox::process_time::timeout(deadline, all)
            .await
            .is_err()
        {
            tracing::warn!("async hooks did not end within {deadline:?} and are given up");
            running.shutdown().await;
        }
    }
}

/// Returns the parts of an answer that are for the user.
fn messages(answer: &Answer) -> impl Iterator<Item = String> {
    let decides = answer.permission.is_some()
        || answer.refuses
        || answer.stop.is_some()
        || answer.updated.is_some()
        || answer.replaced.is_some();
    let reason = answer.reason.clone().or_else(|| answer.stop.clone());
    let ignored = decides.then(|| {
        format!(
            "an async hook has decided something, which has no effect: {}",
            reason.unwrap_or_default()
        )
    });
    let said: Vec<String> = answer
        .messages
        .iter()
        .chain(&answer.ignored)
        .chain(&answer.failures)
        .cloned()
        .collect();
    said.into_iter().chain(ignored)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn so_many_run_at_a_time_and_the_rest_is_ended() {
        let hooks = AsyncHooks::default();
        let start = || hooks.start("ses_1".into(), "Stop", std::future::pending(), |_| ());
        let started = (0..40).filter(|_| start()).count();
        assert_eq!(started, 32);
        hooks.end(Duration::ZERO).await;
        assert!(start());
    }
}
