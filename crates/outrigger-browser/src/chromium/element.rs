//! Elements by their keys: running scripts on them, and finding their position.

use std::time::Duration;

use outrigger_browser_core::action::Point;
use outrigger_browser_core::field::{self, Attributes};
use outrigger_browser_core::snapshot::Key;
use outrigger_sandbox::process_time::Instant;
use outrigger_stdx::sync::lock;
use serde_json::{Value, json};

use super::{Chromium, WORLD};
use crate::error::BrowserError;
use crate::provider::Target;

const LOCATE: &str = include_str!("../scripts/locate.js");
const OUTER: &str = include_str!("../scripts/outer.js");
const TARGET: &str = include_str!("../scripts/target.js");
/// Maximum nesting of frames.
const MAX_DEPTH: usize = 8;
/// How long to wait until an element can be clicked.
const COVER_TIMEOUT: Duration = Duration::from_millis(1_000);
/// Pause between two checks.
const COVER_PAUSE: Duration = Duration::from_millis(100);

/// An element on which scripts can run.
pub(super) struct Element {
    pub(super) session: String,
    pub(super) frame: String,
    object: String,
    name: String,
}

impl Chromium {
    /// Returns the element of a key.
    ///
    /// # Errors
    /// [`BrowserError::Stale`] if it or its document is gone.
    pub(super) async fn element(&self, tab: &str, key: &Key) -> Result<Element, BrowserError> {
        let stale = || BrowserError::Stale {
            reference: "That element".to_owned(),
        };
        let (frame, session) = {
            let state = lock(&self.state);
            let found = self.known(&state, tab)?.frame_of(&key.document);
            let (id, frame) = found.ok_or_else(stale)?;
            (id.clone(), frame.session.clone())
        };
        let world = self.world(tab, &frame, &session).await?;
        let found = self.connection.call(
            &session,
            "DOM.resolveNode",
            json!({ "backendNodeId": key.node, "executionContextId": world }),
        );
        let found = match found.await {
            Err(BrowserError::Refused { .. }) => return Err(stale()),
            other => other?,
        };
        let object = found["object"]["objectId"]
            .as_str()
            .ok_or_else(stale)?
            .to_owned();
        Ok(Element {
            session,
            frame,
            object,
            name: found["object"]["description"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        })
    }

    /// Returns our isolated world in a frame.
    pub(super) async fn world(
        &self,
        tab: &str,
        frame: &str,
        session: &str,
    ) -> Result<i64, BrowserError> {
        let known = {
            let state = lock(&self.state);
            self.known(&state, tab)?
                .frames
                .get(frame)
                .and_then(|it| it.world)
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let made = self
            .connection
            .call(
                session,
                "Page.createIsolatedWorld",
                json!({ "frameId": frame, "worldName": WORLD }),
            )
            .await?;
        let id = made["executionContextId"].as_i64().unwrap_or_default();
        if let Some(it) = lock(&self.state)
            .tabs
            .get_mut(tab)
            .and_then(|it| it.frames.get_mut(frame))
        {
            it.world = Some(id);
        }
        Ok(id)
    }

    /// Runs a script on an element.
    pub(super) async fn run_on(
        &self,
        element: &Element,
        code: &str,
        arguments: &[Value],
    ) -> Result<Value, BrowserError> {
        let arguments: Vec<Value> = arguments.iter().map(|it| json!({ "value": it })).collect();
        let answer = self.connection.call(
            &element.session,
            "Runtime.callFunctionOn",
            json!({ "objectId": element.object, "functionDeclaration": code, "arguments": arguments, "returnByValue": true, "awaitPromise": true }),
        );
        let mut answer = answer.await.map_err(|error| match error {
            // Its document was unloaded while it ran.
            BrowserError::Refused { message, .. }
                if message.contains("context") || message.contains("object") =>
            {
                BrowserError::Stale {
                    reference: "That element".to_owned(),
                }
            }
            other => other,
        })?;
        match answer.get("exceptionDetails") {
            None => Ok(answer["result"]["value"].take()),
            Some(details) => Err(BrowserError::Refused {
                method: format!("code on {}", element.name),
                message: details["exception"]["description"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
            }),
        }
    }

    /// The same for a script that reports in `why` that something cannot be done.
    pub(super) async fn ask_on(
        &self,
        element: &Element,
        action: &str,
        code: &str,
        arguments: &[Value],
    ) -> Result<Value, BrowserError> {
        let answer = self.run_on(element, code, arguments).await?;
        if answer["gone"] == true {
            return Err(BrowserError::Stale {
                reference: "That element".to_owned(),
            });
        }
        match answer["why"].as_str() {
            Some(why) => Err(BrowserError::NotDone {
                action: action.to_owned(),
                why: why.to_owned(),
            }),
            None => Ok(answer),
        }
    }

    /// Returns a visible point of the tab at which a click hits the element.
    ///
    /// # Errors
    /// [`BrowserError::NotDone`] if something else would be hit.
    pub(super) async fn locate(
        &self,
        tab: &str,
        element: &Element,
        action: &str,
    ) -> Result<Point, BrowserError> {
        let at = self.located(element, action).await?;
        let (mut point, mut frame) = (point(&at), element.frame.clone());
        for _ in 0..MAX_DEPTH {
            let around = {
                let state = lock(&self.state);
                let tab = self.known(&state, tab)?;
                tab.frames
                    .get(&frame)
                    .and_then(|it| it.parent.clone())
                    .and_then(|id| {
                        tab.frames
                            .get(&id)
                            .map(|it| (id, it.session.clone(), it.document.clone()))
                    })
            };
            let Some((parent, session, document)) = around else {
                return Ok(point);
            };
            let owner = self
                .connection
                .call(&session, "DOM.getFrameOwner", json!({ "frameId": frame }))
                .await?;
            let node = owner["backendNodeId"].as_i64().unwrap_or_default();
            let owner = self.element(tab, &Key { document, node }).await?;
            let outer = self
                .ask_on(&owner, action, OUTER, &[json!(point.x), json!(point.y)])
                .await?;
            point = self::point(&outer);
            frame = parent;
        }
        Ok(point)
    }

    /// Returns the point within the element's frame. Retries, since menus and calendars may still be moving in front of it.
    async fn located(&self, element: &Element, action: &str) -> Result<Value, BrowserError> {
        let begun = Instant::now();
        loop {
            let at = self.ask_on(element, action, LOCATE, &[action.into()]).await;
            match at {
                Err(BrowserError::NotDone { .. }) if begun.elapsed() < COVER_TIMEOUT => {
                    tokio::time::sleep(COVER_PAUSE).await;
                }
                other => return other,
            }
        }
    }

    pub(super) async fn target_of(&self, tab: &str, key: &Key) -> Result<Target, BrowserError> {
        let element = self.element(tab, key).await?;
        let said = self.run_on(&element, TARGET, &[]).await?;
        let text = |key: &str| said[key].as_str().unwrap_or_default();
        let attributes = Attributes {
            kind: text("type"),
            autocomplete: text("autocomplete"),
            name: text("name"),
            id: text("id"),
        };
        Ok(Target {
            field: field::kind_of(attributes),
            submits: said["submits"] == true,
            value: said["value"].as_str().map(str::to_owned),
        })
    }

    /// Returns whether a checkbox or radio button is checked.
    pub(super) async fn is_checked(&self, element: &Element) -> Result<bool, BrowserError> {
        Ok(self.run_on(element, TARGET, &[]).await?["checked"] == true)
    }

    /// Sets the file of a field.
    pub(super) fn object_of<'a>(&self, element: &'a Element) -> &'a str {
        &element.object
    }
}

fn point(value: &Value) -> Point {
    let of = |key: &str| value[key].as_f64().unwrap_or_default();
    Point {
        x: of("x"),
        y: of("y"),
    }
}
