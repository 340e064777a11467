//! Points of which plugins are notified, not asked. What is about one session, or one connection of the bridge, is notified in the
//! order in which it was reached, one after the other; nothing waits for it.

use std::sync::Arc;

use outrigger_kernel::hooks::{HookInput, HookPoint};
use outrigger_protocol::turn::HookPayload;

use crate::state::Inner;
use crate::state::notifications::{About, MAX_PENDING, Notification, Put};

/// Notifies what is in one line, until nothing is.
struct Notifier {
    inner: Arc<Inner>,
    line: About,
    over: bool,
}

impl Notifier {
    async fn run(mut self, first: Notification) {
        let mut next = Some(first);
        while let Some(Notification {
            point,
            payload,
            about,
        }) = next
        {
            let (session, turn) = about.parts();
            let (session, turn) = (session.as_ref(), turn.as_ref());
            let inner = &self.inner;
            inner
                .run_hooks(point, vec![payload], session, turn, None)
                .await;
            next = self.next();
        }
    }

    fn next(&mut self) -> Option<Notification> {
        match self.inner.notifications.next(&self.line) {
            Ok(next) => Some(next),
            Err(missed) => {
                self.over = true;
                report_missed(&self.line, missed);
                None
            }
        }
    }
}

/// One that is stopped leaves no line that nobody works through.
impl Drop for Notifier {
    fn drop(&mut self) {
        if !self.over {
            report_missed(&self.line, self.inner.notifications.end(&self.line));
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

impl Inner {
    /// Notifies plugins of a point, beside whatever happens next, and after what was to be notified about the same before.
    pub(crate) fn notify_hook<I: HookInput>(
        self: &Arc<Self>,
        input: &I,
        output: &I::Output,
        about: About,
    ) {
        // Most points have no handler, and no payload is made for them.
        if self.plugins.pipeline().has(I::POINT) {
            self.notify_payload(I::POINT, input.payload(output), about);
        }
    }

    /// The same with a payload that is made already.
    pub(crate) fn notify_payload(
        self: &Arc<Self>,
        point: HookPoint,
        payload: HookPayload,
        about: About,
    ) {
        if !self.plugins.pipeline().has(point) {
            return;
        }
        let line = about.line();
        let notification = Notification {
            point,
            payload,
            about,
        };
        match self.notifications.put(&line, notification) {
            Put::First(first) => {
                let notifier = Notifier {
                    inner: Arc::clone(self),
                    line,
                    over: false,
                };
                self.background.spawn(notifier.run(first));
            }
            Put::Dropped(1) => tracing::warn!(
                "[plugins] {MAX_PENDING} notifications about {line} wait for the handlers of plugins: {point} is dropped, and so are later ones until there is room; their number follows"
            ),
            Put::Waits | Put::Dropped(_) | Put::Closed => {}
        }
    }
}
