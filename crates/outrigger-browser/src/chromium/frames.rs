//! The sites of frames.

use futures_util::future::try_join_all;
use outrigger_browser_core::snapshot::Key;
use outrigger_stdx::sync::lock;
use serde_json::json;

use super::Chromium;
use crate::error::BrowserError;
use crate::provider::FrameSite;

/// Maximum number of frames around an element.
const MAX_DEPTH: usize = 32;

impl Chromium {
    /// Returns the sites of an element's frame and its ancestors, from the innermost to the page; without an element, of all frames.
    ///
    /// # Errors
    /// [`BrowserError::Stale`] if the element's document is gone; [`BrowserError::NotDone`] if a frame around it is unknown.
    pub(super) async fn frames_of(
        &self,
        tab: &str,
        key: Option<&Key>,
    ) -> Result<Vec<FrameSite>, BrowserError> {
        let frames: Vec<(String, String)> = {
            let state = lock(&self.state);
            let it = self.known(&state, tab)?;
            let ids = match key {
                None => it.frames.keys().cloned().collect(),
                Some(key) => around(it, key)?,
            };
            let session = |id: &String| it.frames.get(id).map(|frame| frame.session.clone());
            ids.into_iter()
                .filter_map(|id| session(&id).map(|session| (id, session)))
                .collect()
        };
        let asked = frames
            .iter()
            .map(|(id, session)| self.site_of(tab, id, session));
        match key {
            Some(_) => try_join_all(asked).await,
            // A frame of the list may be removed meanwhile.
            None => {
                let all = futures_util::future::join_all(asked).await;
                Ok(all.into_iter().flatten().collect())
            }
        }
    }

    /// Returns the site of a frame, as reported by the frame in an isolated world that pages cannot change.
    pub(super) async fn site_of(
        &self,
        tab: &str,
        frame: &str,
        session: &str,
    ) -> Result<FrameSite, BrowserError> {
        let world = self.world(tab, frame, session).await?;
        let params = json!({
            "expression": "[origin, location.href]", "contextId": world, "returnByValue": true,
        });
        let said = self
            .connection
            .call(session, "Runtime.evaluate", params)
            .await?;
        let text = |at: usize| said["result"]["value"][at].as_str().map(str::to_owned);
        match (text(0), text(1)) {
            (Some(origin), Some(url)) => Ok(FrameSite { origin, url }),
            _ => Err(BrowserError::Stale {
                reference: "That element".to_owned(),
            }),
        }
    }
}

/// Returns the frame of an element and its ancestors, up to the page.
fn around(tab: &super::state::Tab, key: &Key) -> Result<Vec<String>, BrowserError> {
    let Some((id, _)) = tab.frame_of(&key.document) else {
        return Err(BrowserError::Stale {
            reference: "That element".to_owned(),
        });
    };
    let mut ids = vec![id.clone()];
    while let Some(last) = ids.last().filter(|it| **it != tab.main) {
        let parent = tab.frames.get(last).and_then(|it| it.parent.clone());
        match parent.filter(|it| tab.frames.contains_key(it) && ids.len() < MAX_DEPTH) {
            Some(parent) => ids.push(parent),
            None => {
                return Err(BrowserError::NotDone {
                    action: "action".to_owned(),
                    why: "the sites of the frames around it are unknown".to_owned(),
                });
            }
        }
    }
    Ok(ids)
}
