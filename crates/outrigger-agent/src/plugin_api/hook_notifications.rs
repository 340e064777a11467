//! Hook points that only notify plugins. Notifications about one session, or one connection of the bridge, are sent one after the
//! other in the order in which they occurred; nothing waits for them.

use std::sync::Arc;

use outrigger_kernel::hooks::{HookInput, HookPoint};
use outrigger_protocol::id::{SessionId, TurnId};
use outrigger_protocol::turn::HookPayload;

use crate::state::AgentState;
use outrigger_session_state::hook_sequence;
use outrigger_session_state::notifications::{About, MAX_PENDING, Notification, Put, What};

/// Sends the notifications of one queue until it is empty.
struct Notifier {
    state: Arc<AgentState>,
    line: About,
    over: bool,
}

impl Notifier {
    async fn run(mut self, first: Notification) {
        let mut next = Some(first);
        while let Some(Notification { what, about, step }) = next {
            let (session, turn) = about.parts();
            if let Some((point, payload)) = self.content(what, session.as_ref()).await {
                self.state
                    .run_notified(point, payload, session, turn, step)
                    .await;
            }
            next = self.next();
        }
    }

    /// Returns the point and the payload for its handlers. `None` if there is no one to notify or another process has done it.
    async fn content(
        &self,
        what: What,
        session: Option<&SessionId>,
    ) -> Option<(HookPoint, HookPayload)> {
        match what {
            What::Point(point, payload) => Some((point, payload)),
            What::Completed(message) => self.state.take_completion(session?, &message).await,
            What::Sequence(turn) => {
                hook_sequence::log(&self.state.store, &turn).await;
                None
            }
        }
    }

    fn next(&mut self) -> Option<Notification> {
        match self.state.plugins.notifications.next(&self.line) {
            Ok(next) => Some(next),
            Err(missed) => {
                self.over = true;
                report_missed(&self.line, missed);
                None
            }
        }
    }
}

/// If the worker is stopped, its queue is marked as having none.
impl Drop for Notifier {
    fn drop(&mut self) {
        if !self.over {
            report_missed(&self.line, self.state.plugins.notifications.end(&self.line));
        }
    }
}

fn report_missed(line: &About, missed: u64) {
    if missed > 0 {
        tracing::warn!(
            "[plugins] {missed} notifications about {line} were dropped: the handlers of plugins took too long"
        );
    }
}

impl AgentState {
    /// Notifies plugins of a point in the background, after earlier notifications about the same subject.
    pub(crate) fn notify_hook<I: HookInput>(
        self: &Arc<Self>,
        input: &I,
        output: &I::Output,
        about: About,
    ) {
        // Most points have no handler, so no payload is built for them.
        if self.plugins.host.pipeline().has(I::POINT) {
            self.notify_payload(I::POINT, input.payload(output), about);
        }
    }

    /// Like [`Self::notify_hook`], with an existing payload.
    pub(crate) fn notify_payload(
        self: &Arc<Self>,
        point: HookPoint,
        payload: HookPayload,
        about: About,
    ) {
        if self.plugins.host.pipeline().has(point) {
            self.notify(What::Point(point, payload), about);
        }
    }

    /// Logs the hooks that a turn called if enabled, once plugins have been notified of everything that the turn reached.
    pub(crate) fn log_sequence(self: &Arc<Self>, session: &SessionId, turn: &TurnId) {
        if hook_sequence::is_logged() {
            let about = About::Turn(session.clone(), turn.clone());
            self.notify(What::Sequence(turn.clone()), about);
        }
    }

    /// Appends a notification to its queue and starts a worker if there is none.
    pub(crate) fn notify(self: &Arc<Self>, what: What, about: About) {
        let line = about.line();
        let name = match &what {
            What::Point(point, _) => point.name(),
            What::Completed(_) | What::Sequence(_) => "",
        };
        let step = match &about {
            About::Turn(_, turn) => self.sessions.turns.step_of(Some(turn)),
            _ => None,
        };
        let notification = Notification { what, about, step };
        match self.plugins.notifications.put(&line, notification) {
            Put::First(first) => {
                let notifier = Notifier {
                    state: Arc::clone(self),
                    line,
                    over: false,
                };
                self.background.spawn(notifier.run(first));
            }
            Put::Dropped(1) => tracing::warn!(
                "[plugins] {MAX_PENDING} notifications about {line} wait for the handlers of plugins: {name} is dropped, and so are later ones until there is room; their number follows"
            ),
            Put::Waits | Put::Dropped(_) | Put::Closed => {}
        }
    }
}
