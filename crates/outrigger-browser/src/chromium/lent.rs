//! What is different with the user's own browser, which its extension lends to us (`extension/src/relay`).

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
/// The largest file that is uploaded by its bytes.
const MAX_UPLOAD: u64 = 64 * 1024 * 1024;
/// How long an extension whose worker was ended may take to come back: an alarm wakes it every 30 s.
const BACK_TIMEOUT: Duration = Duration::from_secs(45);
/// How long a tab that a page has opened may take until it is attached to.
const POPUP_TIMEOUT: Duration = Duration::from_secs(10);

impl Chromium {
    /// Where the browser is gone for a while, waits until it and our tabs in it are there again.
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

    /// What failed while the connection was lost may have been done in part, whatever it failed of in the end.
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

    /// What cannot be done in it.
    pub(super) fn unless_impossible(&self, step: &Step) -> Result<(), BrowserError> {
        match step.kind {
            Kind::Download if self.is_lent => Err(BrowserError::Input(
                "Downloads of the user's own browser go to the user's folder, and are not taken in."
                    .to_owned(),
            )),
            _ => Ok(()),
        }
    }

    /// Tabs that pages have opened are attached to after they have come: waits until those that are there are known.
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

    /// Gives a file to a field. The extension has no right to files of this machine, so the page gets the bytes.
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

    /// For tests: any command, to a tab or to the browser.
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
