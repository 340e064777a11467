//! Differences for the user's own browser, which its extension lends to us (`extension/src/relay`).

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outrigger_browser_core::action::Kind;
use outrigger_stdx::sync::lock;
use serde_json::{Value, json};

use super::element::Element;
use super::input::Writer;
use super::state::State;
use super::{Chromium, START_TIMEOUT};
use crate::error::BrowserError;
use crate::provider::{Done, Step};

const PUT: &str = include_str!("../scripts/put.js");
/// Maximum size of a file that is uploaded as bytes.
const MAX_UPLOAD: u64 = 64 * 1024 * 1024;
/// Timeout for an extension to reconnect after its worker was stopped: an alarm wakes it every 30 s.
const BACK_TIMEOUT: Duration = Duration::from_secs(45);
/// Timeout for attaching to a tab that a page has opened.
const POPUP_TIMEOUT: Duration = Duration::from_secs(10);

impl Chromium {
    /// If the connection was lost, waits until the browser and our tabs are connected again.
    pub(super) async fn back(&self) -> Result<(), BrowserError> {
        if !self.is_lent {
            return Ok(());
        }
        if !self.connection.is_back(BACK_TIMEOUT).await {
            return Err(BrowserError::Lost {
                cause: "is not connected through its extension".to_owned(),
            });
        }
        let are_ready = |state: &State| {
            let mut tabs = state.tabs.values();
            tabs.all(|it| it.is_ready || it.crashed).then_some(())
        };
        self.until(START_TIMEOUT, are_ready).await;
        Ok(())
    }

    /// A failure during a lost connection may have had a partial effect, whatever the final error is.
    pub(super) fn unless_lost_since<T>(
        &self,
        losses: u64,
        done: Result<T, BrowserError>,
    ) -> Result<T, BrowserError> {
        match done {
            Err(error) if !error.is_unknown() && self.connection.losses() != losses => {
                Err(BrowserError::Lost {
                    cause: "lost its connection in the middle".to_owned(),
                })
            }
            done => done,
        }
    }

    /// Returns an error for unsupported operations.
    pub(super) fn unless_impossible(&self, step: &Step) -> Result<(), BrowserError> {
        match step.kind {
            Kind::Download if self.is_lent => Err(BrowserError::Input(
                "Downloads of the user's own browser go to the user's folder, and are not taken in."
                    .to_owned(),
            )),
            _ => Ok(()),
        }
    }

    /// Tabs opened by pages are attached after they exist: waits until all existing ones are known.
    pub(super) async fn popups_are_known(&self) {
        if !self.is_lent {
            return;
        }
        let Ok(all) = self
            .connection
            .call("", "Target.getTargets", json!({}))
            .await
        else {
            return;
        };
        let infos = all["targetInfos"].as_array().into_iter().flatten();
        let targets: Vec<&str> = infos.filter_map(|it| it["targetId"].as_str()).collect();
        let are_known = |state: &State| {
            let is_ready = |target: &&str| {
                let tab = state.tab_with(target).and_then(|it| state.tabs.get(&it));
                tab.is_some_and(|it| it.is_ready)
            };
            targets.iter().all(is_ready).then_some(())
        };
        self.until(POPUP_TIMEOUT, are_known).await;
    }

    /// Sets the file of a field. The extension cannot access files of this machine, so the page gets the bytes.
    pub(super) async fn put_file(
        &self,
        writer: &Writer<'_>,
        element: &Element,
        file: &Path,
    ) -> Result<Done, BrowserError> {
        let bytes =
            outrigger_files::read(file, MAX_UPLOAD).map_err(|error| BrowserError::NotDone {
                action: "upload".to_owned(),
                why: error.to_string(),
            })?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        self.check_lease(writer.grant)?;
        let arguments = [name.into(), STANDARD.encode(bytes).into()];
        self.ask_on(element, "upload", PUT, &arguments).await?;
        Ok(Done {
            value: self.value(element).await,
            ..Done::default()
        })
    }

    /// For tests: sends any command to a tab or the browser.
    #[doc(hidden)]
    pub async fn command(
        &self,
        tab: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Value, BrowserError> {
        let session = tab.and_then(|tab| {
            let state = lock(&self.state);
            state.tabs.get(tab).map(|it| it.session.clone())
        });
        self.connection
            .call(&session.unwrap_or_default(), method, params)
            .await
    }
}
