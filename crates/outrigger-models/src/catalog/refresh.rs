//! Fetches the published catalog into our cache, in the background and at most once a day.
//!
//! A separate thread does this. Nothing waits for it, neither a turn, nor a start, nor the end of the program (a name lookup
//! cannot be cancelled, and would block a runtime). It leaves a complete new file or the old one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use outrigger_files::Readers;
use outrigger_protocol::diagnose::Diagnose;
use outrigger_stdx::sync::lock;
use reqwest::Url;

use super::{Catalog, Table};
use crate::transport::client::{error_text, http_client};

/// A younger copy is not fetched again.
const MAX_AGE: Duration = Duration::from_secs(24 * 3600);
/// Pause after a failed attempt of this process.
const RETRY_AFTER: Duration = Duration::from_secs(3600);
/// Timeout of the whole fetch.
const FETCH_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum bytes of the response; the published catalog had 5 MB in 2026.
const MAX_BYTES: usize = 32 << 20;

/// Why the catalog could not be fetched. The old one stays.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// The settings disable it.
    #[error("fetching the model catalog is switched off")]
    Off,
    /// The URL cannot be requested.
    #[error("the model catalog's address {url} is not used: {reason}")]
    Address {
        /// URL.
        url: String,
        /// Why.
        reason: String,
    },
    /// No response, or none in time.
    #[error("the model catalog cannot be fetched from {url}: {reason}")]
    Fetch {
        /// URL.
        url: String,
        /// Why.
        reason: String,
    },
    /// The response is not a catalog.
    #[error("{url} did not answer with a model catalog: {reason}")]
    Format {
        /// URL.
        url: String,
        /// The reason.
        reason: String,
    },
    /// It cannot be stored.
    #[error("the model catalog cannot be stored: {0}")]
    Write(String),
}

impl Diagnose for CatalogError {
    fn code(&self) -> &'static str {
        match self {
            Self::Off => "catalog.off",
            Self::Address { .. } => "catalog.address",
            Self::Fetch { .. } => "catalog.fetch",
            Self::Format { .. } => "catalog.format",
            Self::Write(_) => "catalog.write",
        }
    }

    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Off => {
                "`models.fetch_catalog` in outrigger.toml and OPENCODE_DISABLE_MODELS_FETCH decide"
            }
            _ => {
                "`models.catalog_url` in outrigger.toml or OPENCODE_MODELS_URL names another address"
            }
        };
        Some(text.to_owned())
    }
}

/// Returns the URL of a catalog's document from the setting, which may name the site like OpenCode's variable does.
#[must_use]
pub fn models_url(setting: &str) -> String {
    let setting = setting.trim().trim_end_matches('/');
    if setting.ends_with(".json") {
        setting.to_owned()
    } else {
        format!("{setting}/api.json")
    }
}

/// The attempts of this process.
#[derive(Default)]
pub(super) struct Tries {
    is_running: AtomicBool,
    last: Mutex<Option<Instant>>,
}

impl Catalog {
    /// Starts to fetch the catalog if it is due. Costs a check of one or two files and, at most once a day, a thread.
    pub(crate) fn keep_fresh(self: &Arc<Self>, refreshed: impl FnOnce() + Send + 'static) {
        if !self.is_due() || self.tries.is_running.swap(true, Ordering::AcqRel) {
            return;
        }
        let catalog = Arc::clone(self);
        let thread = std::thread::Builder::new().name("model-catalog".to_owned());
        let begun = thread.spawn(move || {
            let done = in_thread(&catalog);
            catalog.tries.is_running.store(false, Ordering::Release);
            match done {
                Ok(()) => refreshed(),
                // The user need not act: the old one, or the built-in table, is still used.
                Err(error) => tracing::debug!("[models] {error}"),
            }
        });
        if let Err(error) = begun {
            self.tries.is_running.store(false, Ordering::Release);
            tracing::debug!("[models] no thread to fetch the catalog: {error}");
        }
    }

    fn is_due(&self) -> bool {
        if self.options.url.is_none() || self.options.file.is_none() {
            return false;
        }
        let age = |time: SystemTime| SystemTime::now().duration_since(time).unwrap_or_default();
        let is_old = self.newest().is_none_or(|(_, time)| age(time) >= MAX_AGE);
        let mut last = lock(&self.tries.last);
        let is_time = is_old && last.is_none_or(|last| last.elapsed() >= RETRY_AFTER);
        if is_time {
            *last = Some(Instant::now());
        }
        is_time
    }

    /// Fetches the catalog now and applies it. An invalid response leaves the old one.
    ///
    /// # Errors
    /// [`CatalogError`].
    pub(crate) async fn refresh(&self) -> Result<(), CatalogError> {
        let options = &self.options;
        let (Some(url), Some(file)) = (&options.url, &options.file) else {
            return Err(CatalogError::Off);
        };
        let wrong = |reason: String| CatalogError::Format {
            url: url.clone(),
            reason,
        };
        let text = fetch(url).await?;
        let table: Table =
            serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        if table.values().all(|provider| provider.models.is_empty()) {
            return Err(wrong("there is no model in it".to_owned()));
        }
        // Unused parts are removed: less than half of it remains for the next start to parse.
        let kept = serde_json::to_vec(&table).map_err(|error| wrong(error.to_string()))?;
        outrigger_files::replace(file, &kept, Readers::Owner)
            .map_err(|error| CatalogError::Write(format!("{}: {error}", file.display())))?;
        *lock(&self.published) = Some(Arc::new(table));
        if let Some(notify) = &options.on_refresh {
            notify();
        }
        Ok(())
    }
}

fn in_thread(catalog: &Catalog) -> Result<(), CatalogError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CatalogError::Write(error.to_string()))?;
    let done = runtime.block_on(catalog.refresh());
    runtime.shutdown_background();
    done
}

async fn fetch(url: &str) -> Result<Vec<u8>, CatalogError> {
    let refused = |reason: String| CatalogError::Address {
        url: url.to_owned(),
        reason,
    };
    let failed = |reason: String| CatalogError::Fetch {
        url: url.to_owned(),
        reason,
    };
    let parsed = Url::parse(url).map_err(|error| refused(error.to_string()))?;
    // It determines where keys are sent: no one on the network may modify it.
    if parsed.scheme() != "https" && !outrigger_net::is_local(&parsed) {
        return Err(refused("it does not begin with https://".to_owned()));
    }
    let client = http_client(url).map_err(refused)?;
    let whole = async {
        let mut response = client
            .get(parsed)
            .send()
            .await
            .map_err(|e| error_text(&e))?;
        if response.status() != http::StatusCode::OK {
            return Err(format!("it answers {}", response.status()));
        }
        let mut text = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|e| error_text(&e))? {
            text.extend_from_slice(&piece);
            if text.len() > MAX_BYTES {
                return Err(format!("it is longer than {} MiB", MAX_BYTES >> 20));
            }
        }
        Ok(text)
    };
    let timed = tokio::time::timeout(FETCH_TIMEOUT, whole).await;
    let late = || Err(format!("no answer in {} s", FETCH_TIMEOUT.as_secs()));
    timed.unwrap_or_else(|_| late()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_name_the_site_or_the_document() {
        for (setting, want) in [
            ("https://models.dev", "https://models.dev/api.json"),
            ("https://models.dev/", "https://models.dev/api.json"),
            ("http://127.0.0.1:1/x.json", "http://127.0.0.1:1/x.json"),
        ] {
            assert_eq!(models_url(setting), want);
        }
    }
}
