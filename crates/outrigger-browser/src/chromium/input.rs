//! Clicks and keys. Everything that changes a tab goes through [`Writer`], which checks the lease each time (C9, 6).

use outrigger_browser_core::action::Point;
use outrigger_browser_core::lease::Grant;
use outrigger_stdx::sync::lock;
use serde_json::{Value, json};

use super::Chromium;
use super::keys::{self, Press};
use crate::error::BrowserError;

/// Maximum length of text typed key by key; the rest is inserted at once.
const MAX_KEYS: usize = 300;
/// Intermediate points of a drag.
const DRAG_STEPS: u32 = 6;

/// Changes a tab under a lease.
pub(super) struct Writer<'a> {
    pub(super) browser: &'a Chromium,
    pub(super) grant: &'a Grant,
    /// Protocol session.
    pub(super) session: String,
    /// The document of the action; nothing is sent after the page has changed.
    pub(super) document: Option<String>,
}

impl Writer<'_> {
    /// Sends a command that changes something.
    pub(super) async fn call(
        &self,
        session: &str,
        method: &str,
        params: Value,
    ) -> Result<Value, BrowserError> {
        self.browser.check_lease(self.grant)?;
        self.browser.connection.call(session, method, params).await
    }

    /// Returns whether the page is still the one for which the action was decided.
    fn check_document(&self) -> Result<(), BrowserError> {
        let Some(document) = &self.document else {
            return Ok(());
        };
        let state = lock(&self.browser.state);
        let tab = self.browser.known(&state, &self.grant.tab)?;
        match tab.frame_of(document) {
            Some(_) => Ok(()),
            None => Err(BrowserError::Stale {
                reference: "That element".to_owned(),
            }),
        }
    }

    /// Sends a mouse or keyboard event. If it opens a dialog, it is answered only after the dialog, so the answer is not awaited.
    async fn input(
        &self,
        method: &str,
        params: Value,
        own: Option<&str>,
    ) -> Result<(), BrowserError> {
        self.browser.check_lease(self.grant)?;
        self.check_document()?;
        let tab = &self.grant.tab;
        if let (Some(kind), Some(it)) = (own, lock(&self.browser.state).tabs.get_mut(tab)) {
            it.will_send(kind);
        }
        let sent = self.browser.connection.call(&self.session, method, params);
        tokio::select! {
            answer = sent => answer.map(drop),
            () = self.browser.dialog_opens(tab) => Ok(()),
        }
    }

    async fn mouse(
        &self,
        kind: &str,
        at: Point,
        button: &str,
        clicks: u32,
        modifiers: u32,
    ) -> Result<(), BrowserError> {
        let buttons = match (kind, button) {
            ("mouseReleased", _) | (_, "none") => 0,
            (_, "right") => 2,
            (_, "middle") => 4,
            _ => 1,
        };
        let own = (kind == "mousePressed").then_some("pointerdown");
        let params = json!({
            "type": kind, "x": at.x, "y": at.y, "button": button, "buttons": buttons, "clickCount": clicks,
            "modifiers": modifiers, "pointerType": "mouse",
        });
        self.input("Input.dispatchMouseEvent", params, own).await
    }

    pub(super) async fn hover(&self, at: Point) -> Result<(), BrowserError> {
        self.mouse("mouseMoved", at, "none", 0, 0).await
    }

    pub(super) async fn click(
        &self,
        at: Point,
        button: &str,
        times: u32,
        modifiers: u32,
    ) -> Result<(), BrowserError> {
        self.mouse("mouseMoved", at, "none", 0, modifiers).await?;
        for count in 1..=times {
            self.mouse("mousePressed", at, button, count, modifiers)
                .await?;
            self.mouse("mouseReleased", at, button, count, modifiers)
                .await?;
        }
        Ok(())
    }

    /// Drags with the mouse; with drag events if the page uses HTML drag and drop.
    pub(super) async fn drag(&self, from: Point, to: Point) -> Result<(), BrowserError> {
        self.call(
            &self.session,
            "Input.setInterceptDrags",
            json!({ "enabled": true }),
        )
        .await?;
        let done = self.drag_intercepted(from, to).await;
        self.browser.connection.post(
            &self.session,
            "Input.setInterceptDrags",
            &json!({ "enabled": false }),
        );
        done
    }

    async fn drag_intercepted(&self, from: Point, to: Point) -> Result<(), BrowserError> {
        lock(&self.browser.drags).remove(&self.session);
        self.mouse("mouseMoved", from, "none", 0, 0).await?;
        self.mouse("mousePressed", from, "left", 1, 0).await?;
        for step in 1..=DRAG_STEPS {
            let part = f64::from(step) / f64::from(DRAG_STEPS);
            let at = Point {
                x: from.x + (to.x - from.x) * part,
                y: from.y + (to.y - from.y) * part,
            };
            self.mouse("mouseMoved", at, "left", 0, 0).await?;
            let data = lock(&self.browser.drags).remove(&self.session);
            if let Some(data) = data {
                for kind in ["dragEnter", "dragOver", "drop"] {
                    let params = json!({ "type": kind, "x": to.x, "y": to.y, "data": data });
                    self.input("Input.dispatchDragEvent", params, None).await?;
                }
                break;
            }
        }
        self.mouse("mouseReleased", to, "left", 1, 0).await
    }

    pub(super) async fn press(&self, chord: &str) -> Result<(), BrowserError> {
        let (bits, press) = keys::chord(chord).ok_or_else(|| {
            BrowserError::Input(format!("There is no key {chord:?}; keys are named as `Enter`, `ArrowDown`, `a` or `Control+a`."))
        })?;
        self.key(&press, bits).await
    }

    async fn key(&self, press: &Press, modifiers: u32) -> Result<(), BrowserError> {
        let Press {
            key,
            code,
            number,
            text,
        } = press;
        let down = if text.is_empty() {
            "rawKeyDown"
        } else {
            "keyDown"
        };
        let params = |kind: &str, text: &str| {
            json!({
                "type": kind, "key": key, "code": code, "windowsVirtualKeyCode": number, "text": text, "modifiers": modifiers,
            })
        };
        self.input(
            "Input.dispatchKeyEvent",
            params(down, text),
            Some("keydown"),
        )
        .await?;
        self.input("Input.dispatchKeyEvent", params("keyUp", ""), None)
            .await
    }

    /// Types a text key by key; inserts characters without a key at once.
    pub(super) async fn type_keys(&self, text: &str) -> Result<(), BrowserError> {
        let end = text
            .char_indices()
            .nth(MAX_KEYS)
            .map_or(text.len(), |(at, _)| at);
        let (typed, rest) = text.split_at(end);
        for c in typed.chars() {
            match c {
                '\n' => self.press("Enter").await?,
                '\t' => self.press("Tab").await?,
                c if c.is_ascii() => match keys::key(c.encode_utf8(&mut [0; 4])) {
                    Some(press) => self.key(&press, 0).await?,
                    None => self.put(c.encode_utf8(&mut [0; 4])).await?,
                },
                c => self.put(c.encode_utf8(&mut [0; 4])).await?,
            }
        }
        if rest.is_empty() {
            Ok(())
        } else {
            self.put(rest).await
        }
    }

    /// Inserts a text at the cursor.
    pub(super) async fn put(&self, text: &str) -> Result<(), BrowserError> {
        self.input("Input.insertText", json!({ "text": text }), None)
            .await
    }
}
