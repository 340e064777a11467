//! Waiting for events, and for a page to settle after an action.

use std::time::Duration;

use outrigger_sandbox::process_time::{Instant, timeout, timeout_at};
use outrigger_stdx::sync::lock;
use serde_json::json;

use super::Chromium;
use super::state::State;
use crate::error::BrowserError;
use crate::provider::{Dialog, Mark};

const SETTLE: &str = include_str!("../scripts/settle.js");
/// Timeout for a page to render the effect of an action.
const DRAW_TIMEOUT: Duration = Duration::from_millis(1_500);
/// How long to wait for requests caused by an action.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(1_500);

impl Chromium {
    /// Returns the first result of `found`, which is called after each event; `None` after the timeout.
    pub(super) async fn until<T>(
        &self,
        wait: Duration,
        found: impl Fn(&State) -> Option<T>,
    ) -> Option<T> {
        let mut changed = self.changed.subscribe();
        let deadline = Instant::now() + wait;
        loop {
            changed.borrow_and_update();
            let answer = found(&lock(&self.state));
            if answer.is_some() || self.connection.is_closed() {
                return answer;
            }
            tokio::select! {
                changed = timeout_at(deadline, changed.changed()) => if !matches!(changed, Ok(Ok(()))) {
                    return found(&lock(&self.state));
                },
                () = self.connection.closed() => return None,
            }
        }
    }

    /// Completes when a dialog of a tab opens, or the tab is closed.
    pub(super) async fn dialog_opens(&self, tab: &str) {
        let open = |state: &State| {
            state
                .tabs
                .get(tab)
                .is_none_or(|it| it.dialog.is_some() || it.crashed)
                .then_some(())
        };
        loop {
            if self.until(Duration::from_secs(3600), open).await.is_some()
                || self.connection.is_closed()
            {
                return;
            }
        }
    }

    pub(super) fn dialog_of(&self, tab: &str) -> Option<Dialog> {
        lock(&self.state).tabs.get(tab)?.dialog.clone()
    }

    pub(super) fn mark_of(&self, tab: &str) -> Mark {
        lock(&self.state)
            .tabs
            .get(tab)
            .map(super::state::Tab::mark)
            .unwrap_or_default()
    }

    /// Waits until a tab has loaded its document, or has an open dialog.
    pub(super) async fn loaded(&self, tab: &str, document: Option<&str>, wait: Duration) {
        self.until(wait, |state| {
            let Some(it) = state.tabs.get(tab) else {
                return Some(());
            };
            let shown = it.frames.get(&it.main).map(|frame| frame.document.as_str());
            let is_there = document.is_none() || shown == document;
            (it.dialog.is_some() || (is_there && it.is_ready && !it.loading.contains(&it.main)))
                .then_some(())
        })
        .await;
    }

    /// Waits after an action until its effect is rendered, the next page is loaded, and its requests are answered.
    pub(super) async fn settle(&self, tab: &str, since: Mark, wait: Duration) {
        let drawn = timeout(DRAW_TIMEOUT, self.draw(tab));
        tokio::select! {
            _ = drawn => {}
            () = self.dialog_opens(tab) => return,
        }
        self.loaded(tab, None, wait).await;
        let waits = |state: &State| match state.tabs.get(tab) {
            Some(it) if it.dialog.is_none() => (!it.waits_since(since)).then_some(()),
            _ => Some(()),
        };
        let had_to_wait = waits(&lock(&self.state)).is_none();
        if had_to_wait {
            self.until(REQUEST_TIMEOUT, waits).await;
            let _ = timeout(DRAW_TIMEOUT, self.draw(tab)).await;
        }
    }

    async fn draw(&self, tab: &str) -> Result<(), BrowserError> {
        let (session, main) = {
            let state = lock(&self.state);
            let it = self.known(&state, tab)?;
            (it.session.clone(), it.main.clone())
        };
        let world = self.world(tab, &main, &session).await?;
        let params = json!({ "expression": SETTLE, "contextId": world, "awaitPromise": true, "returnByValue": true });
        self.connection
            .call(&session, "Runtime.evaluate", params)
            .await
            .map(drop)
    }
}
