//! Implements the provider trait.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_browser_core::action::Kind;
use outrigger_browser_core::lease::{Grant, Owner};
use outrigger_browser_core::snapshot::Key;
use outrigger_stdx::sync::lock;
use serde_json::{Value, json};

use super::Chromium;
use crate::error::BrowserError;
use crate::provider::{
    Answer, Dialog, Done, Frame, FrameSite, Look, Mark, Picture, Provider, Recorded, Step, TabInfo,
    Target,
};

const MARK: &str = include_str!("../scripts/mark.js");
const UNMARK: &str =
    "for (const mark of document.querySelectorAll('[outrigger-mark]')) mark.remove()";
/// Timeout for a page to load.
const READY_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a shown response body, in bytes.
const MAX_BODY: usize = 20_000;

impl Provider for Chromium {
    fn name(&self) -> &'static str {
        if self.is_lent { "extension" } else { "cdp" }
    }

    fn is_gone(&self) -> bool {
        self.connection.is_closed()
    }

    fn open<'a>(
        &'a self,
        owner: &'a Owner,
        url: Option<&'a str>,
        wait: Duration,
    ) -> Answer<'a, String> {
        Box::pin(async move {
            self.back().await?;
            let params = json!({ "url": "about:blank", "browserContextId": self.context, "background": true });
            let made = self
                .connection
                .call("", "Target.createTarget", params)
                .await?;
            let target = made["targetId"].as_str().unwrap_or_default().to_owned();
            {
                let mut state = lock(&self.state);
                match state
                    .tab_with(&target)
                    .and_then(|name| state.tabs.get_mut(&name))
                {
                    Some(tab) => tab.info.session.clone_from(&owner.session),
                    None => {
                        state.opening.insert(target.clone(), owner.session.clone());
                    }
                }
            }
            let ready = self.until(READY_TIMEOUT, |state| {
                let name = state.tab_with(&target)?;
                state.tabs.get(&name)?.is_ready.then_some(name)
            });
            let tab = ready.await.ok_or_else(|| BrowserError::Lost {
                cause: "did not open a tab".to_owned(),
            })?;
            if let Some(url) = url {
                let grant = self.acquire(&tab, owner)?;
                let step = Step::navigate(url, wait);
                if let Err(error) = self.step(&grant, &step).await {
                    // If the page does not load, the tab is closed.
                    let _ = self.close_safely(&tab).await;
                    return Err(error);
                }
            }
            Ok(tab)
        })
    }

    fn tabs(&self) -> Vec<TabInfo> {
        lock(&self.state)
            .tabs
            .values()
            .map(|it| it.info.clone())
            .collect()
    }

    fn acquire(&self, tab: &str, owner: &Owner) -> Result<Grant, BrowserError> {
        let now = self.now();
        let mut state = lock(&self.state);
        self.known(&state, tab)?;
        state
            .leases
            .acquire(tab, owner, now)
            .map_err(BrowserError::Lease)
    }

    fn look<'a>(&'a self, tab: &'a str) -> Answer<'a, Look> {
        Box::pin(async move {
            self.back().await?;
            self.look_at(tab).await
        })
    }

    fn target<'a>(&'a self, tab: &'a str, key: &'a Key) -> Answer<'a, Target> {
        Box::pin(async move {
            self.back().await?;
            self.target_of(tab, key).await
        })
    }

    fn frames<'a>(&'a self, tab: &'a str, key: Option<&'a Key>) -> Answer<'a, Vec<FrameSite>> {
        Box::pin(async move {
            self.back().await?;
            self.frames_of(tab, key).await
        })
    }

    fn act<'a>(&'a self, grant: &'a Grant, step: &'a Step) -> Answer<'a, Done> {
        Box::pin(async move {
            self.back().await?;
            let losses = self.connection.losses();
            let done = self.step(grant, step).await;
            self.unless_lost_since(losses, done)
        })
    }

    fn mark(&self, tab: &str) -> Mark {
        self.mark_of(tab)
    }

    fn recorded(&self, tab: &str, since: Mark) -> Recorded {
        let state = lock(&self.state);
        state
            .tabs
            .get(tab)
            .map(|it| it.recorded(since))
            .unwrap_or_default()
    }

    fn dialog(&self, tab: &str) -> Option<Dialog> {
        self.dialog_of(tab)
    }

    fn picture<'a>(&'a self, tab: &'a str, frame: &'a Frame) -> Answer<'a, Picture> {
        Box::pin(self.take_picture(tab, frame))
    }

    fn eval<'a>(&'a self, grant: &'a Grant, code: &'a str) -> Answer<'a, String> {
        Box::pin(async move {
            self.check_lease(grant)?;
            self.usable(&grant.tab)?;
            let session = self.session_of(&grant.tab)?;
            let params = json!({ "expression": code, "awaitPromise": true, "returnByValue": true, "timeout": 10_000 });
            let answer = self
                .connection
                .call(&session, "Runtime.evaluate", params)
                .await?;
            match answer.get("exceptionDetails") {
                None => Ok(answer["result"]
                    .get("value")
                    .unwrap_or(&Value::Null)
                    .to_string()),
                Some(details) => Err(BrowserError::Input(format!(
                    "The page threw: {}",
                    details["exception"]["description"]
                        .as_str()
                        .or(details["text"].as_str())
                        .unwrap_or_default()
                ))),
            }
        })
    }

    fn body<'a>(&'a self, tab: &'a str, number: u64) -> Answer<'a, String> {
        Box::pin(async move {
            let (session, id) = {
                let state = lock(&self.state);
                let it = self.known(&state, tab)?;
                let id = it.request_id(number).ok_or_else(|| {
                    BrowserError::Input(format!("There is no request {number} any more."))
                })?;
                (it.session.clone(), id)
            };
            let answer = self
                .connection
                .call(
                    &session,
                    "Network.getResponseBody",
                    json!({ "requestId": id }),
                )
                .await?;
            if answer["base64Encoded"] == true {
                return Ok("(no text)".to_owned());
            }
            let body = answer["body"].as_str().unwrap_or_default();
            let end = (0..=MAX_BODY.min(body.len()))
                .rev()
                .find(|at| body.is_char_boundary(*at))
                .unwrap_or_default();
            Ok(body.get(..end).unwrap_or_default().to_owned())
        })
    }

    fn downloaded(&self, tab: &str, since: Mark) -> Option<(String, PathBuf)> {
        lock(&self.state).tabs.get(tab)?.downloaded(since)
    }

    fn end_turn(&self, session: &str) {
        lock(&self.state).leases.end_turn(session);
    }

    fn end_session(&self, session: &str) {
        let targets: Vec<String> = {
            let mut state = lock(&self.state);
            state.leases.end_turn(session);
            state
                .tabs
                .values()
                .filter(|it| it.info.session == session)
                .map(|it| it.target.clone())
                .collect()
        };
        for target in targets {
            self.connection
                .post("", "Target.closeTarget", &json!({ "targetId": target }));
        }
    }

    fn hand_back(&self, tab: &str) {
        lock(&self.state).leases.handed_back(tab);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let child = self.child.lock().await.take();
            let Some(mut child) = child else {
                let leave = json!({ "browserContextId": self.context });
                // The connection may already be closed.
                let _ = self
                    .connection
                    .call("", "Target.disposeBrowserContext", leave)
                    .await;
                self.connection.close();
                drop(lock(&self.listening).take());
                return;
            };
            self.connection.post("", "Browser.close", &json!({}));
            let _ = outrigger_sandbox::process_time::timeout(Duration::from_secs(2), child.wait())
                .await;
            drop(child);
            if let Err(error) = outrigger_files::remove_tree(&self.folder) {
                tracing::debug!("{} is not removed: {error}", self.folder.display());
            }
        })
    }
}

impl Step {
    /// Navigates a tab.
    #[must_use]
    pub fn navigate(url: &str, wait: Duration) -> Self {
        Self {
            url: Some(url.to_owned()),
            ..Self::of(Kind::Navigate, wait)
        }
    }

    /// Returns a step of a kind with default values.
    #[must_use]
    pub fn of(kind: Kind, wait: Duration) -> Self {
        Self {
            kind,
            place: None,
            to: None,
            text: None,
            is_secret: false,
            granted: Vec::new(),
            values: Vec::new(),
            url: None,
            file: None,
            by: None,
            accept: false,
            submit: false,
            modifiers: Vec::new(),
            button: "left".to_owned(),
            focus: false,
            wait,
        }
    }
}

/// For tests.
#[doc(hidden)]
impl Chromium {
    /// Simulates a click of the user.
    pub async fn as_person(&self, tab: &str, at: outrigger_browser_core::action::Point) {
        let session = self.session_of(tab).unwrap_or_default();
        for kind in ["mousePressed", "mouseReleased"] {
            let params = json!({ "type": kind, "x": at.x, "y": at.y, "button": "left", "buttons": 1, "clickCount": 1 });
            let _ = self
                .connection
                .call(&session, "Input.dispatchMouseEvent", params)
                .await;
        }
    }

    /// Crashes the page of a tab and waits until the browser reports it.
    pub async fn crash(&self, tab: &str) {
        let session = self.session_of(tab).unwrap_or_default();
        self.connection.post(&session, "Page.crash", &json!({}));
        let mut changes = self.changed.subscribe();
        let has_crashed = |_: &u64| lock(&self.state).tabs.get(tab).is_none_or(|it| it.crashed);
        // An error means that the browser is gone.
        let _ = changes.wait_for(has_crashed).await;
    }

    /// Kills the browser like a crash.
    pub async fn kill(&self) {
        if let Some(child) = self.child.lock().await.take() {
            child.kill_tree();
        }
        self.connection.closed().await;
    }
}

impl Chromium {
    pub(super) fn session_of(&self, tab: &str) -> Result<String, BrowserError> {
        let state = lock(&self.state);
        Ok(self.known(&state, tab)?.session.clone())
    }

    /// Returns the root element of a tab's page.
    pub(super) async fn page_element(
        &self,
        tab: &str,
    ) -> Result<super::element::Element, BrowserError> {
        let session = self.session_of(tab)?;
        let root = self
            .connection
            .call(&session, "DOM.getDocument", json!({ "depth": 1 }))
            .await?;
        let children = root["root"]["children"].as_array().into_iter().flatten();
        let node = children
            .filter_map(|it| it["backendNodeId"].as_i64())
            .next_back()
            .unwrap_or_default();
        let document = {
            let state = lock(&self.state);
            let it = self.known(&state, tab)?;
            it.frames
                .get(&it.main)
                .map(|frame| frame.document.clone())
                .unwrap_or_default()
        };
        self.element(tab, &Key { document, node }).await
    }

    /// Closes a tab. A browser exits with its last tab, so that is replaced by an empty one.
    pub(super) async fn close_safely(&self, tab: &str) -> Result<(), BrowserError> {
        let target = {
            let state = lock(&self.state);
            self.known(&state, tab)?.target.clone()
        };
        // In the user's own browser we know only our tabs; its extension keeps the last one open.
        let all = self
            .connection
            .call("", "Target.getTargets", json!({}))
            .await?;
        let pages = all["targetInfos"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|it| it["type"] == "page")
            .count();
        if pages <= 1 && !self.is_lent {
            self.connection
                .call(
                    "",
                    "Target.createTarget",
                    json!({ "url": "about:blank", "background": true }),
                )
                .await?;
        }
        self.connection
            .call("", "Target.closeTarget", json!({ "targetId": target }))
            .await?;
        self.until(Duration::from_secs(5), |state| {
            (!state.tabs.contains_key(tab)
                || state.tabs.get(tab).is_some_and(|it| it.dialog.is_some()))
            .then_some(())
        })
        .await;
        Ok(())
    }

    async fn take_picture(&self, tab: &str, frame: &Frame) -> Result<Picture, BrowserError> {
        self.usable(tab)?;
        let session = self.session_of(tab)?;
        let mut params = json!({ "format": "png", "captureBeyondViewport": frame.full });
        if frame.full {
            let size = self
                .connection
                .call(&session, "Page.getLayoutMetrics", json!({}))
                .await?;
            let of = |key: &str| size["cssContentSize"][key].as_f64().unwrap_or_default();
            params["clip"] = json!({ "x": 0, "y": 0, "width": of("width"), "height": of("height").min(16_000.0), "scale": 1 });
        }
        if let Some(key) = &frame.element {
            let element = self.element(tab, key).await?;
            let code = "function () { this.scrollIntoViewIfNeeded?.(true); const at = this.getBoundingClientRect(); return { x: at.left + scrollX, y: at.top + scrollY, width: at.width, height: at.height } }";
            let at = self.run_on(&element, code, &[]).await?;
            if at["width"].as_f64().unwrap_or_default() < 1.0
                || at["height"].as_f64().unwrap_or_default() < 1.0
            {
                return Err(BrowserError::NotDone {
                    action: "picture".to_owned(),
                    why: "it has no size".to_owned(),
                });
            }
            params["clip"] = at;
            params["clip"]["scale"] = 1.into();
        }
        for (reference, key) in &frame.marked {
            if let Ok(element) = self.element(tab, key).await {
                // An element that is gone gets no mark.
                let _ = self
                    .run_on(&element, MARK, &[reference.as_str().into()])
                    .await;
            }
        }
        let taken = self
            .connection
            .call(&session, "Page.captureScreenshot", params)
            .await;
        if !frame.marked.is_empty() {
            self.unmark(tab).await;
        }
        let base64 = taken?["data"].as_str().unwrap_or_default().to_owned();
        Ok(Picture {
            mime: "image/png",
            base64,
        })
    }

    async fn unmark(&self, tab: &str) {
        let frames: Vec<(String, String)> = {
            let state = lock(&self.state);
            let Some(it) = state.tabs.get(tab) else {
                return;
            };
            it.frames
                .iter()
                .map(|(id, frame)| (id.clone(), frame.session.clone()))
                .collect()
        };
        for (frame, session) in frames {
            if let Ok(world) = self.world(tab, &frame, &session).await {
                self.connection.post(
                    &session,
                    "Runtime.evaluate",
                    &json!({ "expression": UNMARK, "contextId": world }),
                );
            }
        }
    }
}
