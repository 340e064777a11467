//! Waiting for what the browser tells, and until a page has settled after an action.

use std::time::Duration;

use outrigger_sandbox::process_time::{Instant, timeout, timeout_at};
use outrigger_stdx::sync::lock;
use serde_json::json;

use super::Chromium;
use super::state::State;
use crate::error::BrowserError;
use crate::provider::{Dialog, Mark};

const SETTLE: &str = include_str!("../scripts/settle.js");
/// How long a page may take to draw what an action has set off.
const DRAW_TIMEOUT: Duration = Duration::from_millis(1_500);
/// How long requests of the page that an action has set off are waited for.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(1_500);

impl Chromium {
    /// The first answer of `found`, which is asked again after each event; `None` when time is up.
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

    /// Ends when a dialog of a tab opens, or the tab goes.
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

    /// Until a tab shows a document and has loaded it, or has a dialog open.
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

    /// After an action: what it has set off is drawn, the page that it leads to is there, what it asked for has come.
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
