//! Limits, prices and capabilities of models that the configuration does not describe.
//!
//! Two sources, both in the format of <https://models.dev/api.json>: the published catalog as fetched by us ([`refresh`]) or
//! by OpenCode, whichever is newer, and a small committed table (created by `cargo xtask models`). Both are read when a model
//! is first looked up in them, never before.

mod refresh;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::SystemTime;

use outrigger_stdx::sync::lock;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use refresh::{CatalogError, models_url};

/// The committed table: the relevant data of the best known models, as listed by models.dev on the day in it.
const KNOWN: &str = include_str!("known.json");

/// Where the published catalog is stored, and its source.
#[derive(Clone, Default)]
pub struct CatalogOptions {
    /// Our copy of it, `$XDG_CACHE_HOME/outrigger/models.json`.
    pub file: Option<PathBuf>,
    /// OpenCode's copy, `$XDG_CACHE_HOME/opencode/models.json`, which is only read. A missing file is not an error.
    pub of_opencode: Option<PathBuf>,
    /// The URL of the catalog; nothing is fetched without one.
    pub url: Option<String>,
    /// Called after another catalog was fetched.
    pub on_refresh: Option<Arc<dyn Fn() + Send + Sync>>,
}

/// A provider of the catalog.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct CatalogProvider {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    pub(crate) env: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) npm: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) api: Option<String>,
    pub(crate) models: BTreeMap<String, CatalogModel>,
}

/// A model of the catalog. Everything is optional, as the document is not ours.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct CatalogModel {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) family: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attachment: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_call: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) temperature: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) release_date: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) modalities: Option<CatalogModalities>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) interleaved: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<CatalogLimit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<CatalogCost>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) provider: Option<CatalogApi>,
}

/// Kinds of content by name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct CatalogModalities {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<Vec<String>>,
}

/// Tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct CatalogLimit {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<f64>,
}

/// US dollars for a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct CatalogCost {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache_read: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache_write: Option<f64>,
}

/// A model with another API than its provider's others.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct CatalogApi {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) npm: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) api: Option<String>,
}

type Table = BTreeMap<String, Arc<CatalogProvider>>;

/// The committed table and its date.
#[derive(Default, Deserialize)]
struct BundledCatalog {
    made: String,
    providers: Table,
}

/// Both sources.
#[derive(Default)]
pub(crate) struct Catalog {
    options: CatalogOptions,
    published: Mutex<Option<Arc<Table>>>,
    known: OnceLock<BundledCatalog>,
    tries: refresh::Tries,
}

impl Catalog {
    pub(crate) fn new(options: CatalogOptions) -> Self {
        Self {
            options,
            ..Self::default()
        }
    }

    /// Returns the newer non-empty copy of the published catalog.
    fn newest(&self) -> Option<(&Path, SystemTime)> {
        let options = &self.options;
        let files = [options.file.as_deref(), options.of_opencode.as_deref()];
        let with_time = files.into_iter().flatten().filter_map(|path| {
            let meta = path.metadata().ok()?;
            // We create an empty one if there is none.
            (meta.len() > 0).then_some((path, meta.modified().ok()?))
        });
        with_time.max_by_key(|(_, time)| *time)
    }

    fn published(&self) -> Arc<Table> {
        let mut published = lock(&self.published);
        Arc::clone(published.get_or_insert_with(|| Arc::new(self.read())))
    }

    fn read(&self) -> Table {
        let Some((path, _)) = self.newest() else {
            return Table::new();
        };
        outrigger_files::read(path, outrigger_files::DATA)
            .map_err(|error| error.to_string())
            .and_then(|text| serde_json::from_slice(&text).map_err(|error| error.to_string())).unwrap_or_else(|error| {
            tracing::warn!(path = %path.display(), %error, "the cached model catalog cannot be read; using the built-in table");
            Table::new()
        })
    }

    fn known(&self) -> &BundledCatalog {
        self.known.get_or_init(|| {
            // A test makes sure that the committed table is well-formed.
            serde_json::from_str(KNOWN).unwrap_or_default()
        })
    }

    /// Returns the catalog's entry of a provider.
    pub(crate) fn provider(&self, id: &str) -> Option<Arc<CatalogProvider>> {
        self.published()
            .get(id)
            .cloned()
            .or_else(|| self.known().providers.get(id).cloned())
    }

    /// Returns the names of all known providers.
    pub(crate) fn provider_ids(&self) -> Vec<String> {
        let published = self.published();
        let known = &self.known().providers;
        let mut ids: Vec<String> = published.keys().chain(known.keys()).cloned().collect();
        ids.sort();
        ids.dedup();
        ids
    }

    /// Returns the source of its data, for display: the file and its day, or the day of the built-in table.
    pub(crate) fn source(&self) -> String {
        match self.newest() {
            Some((path, time)) => {
                let day = jiff::Timestamp::try_from(time).unwrap_or_default();
                format!("{} ({})", path.display(), day.strftime("%F"))
            }
            None => format!("the table built in ({})", self.known().made),
        }
    }

    /// Returns the entry of a model, or of the model of which it is a dated or tagged version (`claude-haiku-4-5-20251001`,
    /// `qwen/qwen3.6-27b:free`, `gpt-5-2025-08-07`).
    pub(crate) fn model(&self, provider: &str, model: &str) -> Option<CatalogModel> {
        let provider = self.provider(provider)?;
        if let Some(found) = provider.models.get(model) {
            return Some(found.clone());
        }
        let base = provider
            .models
            .iter()
            .filter(|(id, _)| model.strip_prefix(id.as_str()).is_some_and(is_version))
            .max_by_key(|(id, _)| id.len())?;
        let mut found = base.1.clone();
        found.id = Some(model.to_owned());
        found.name = Some(model.to_owned());
        Some(found)
    }
}

// `-20251001`, `-2025-08-07`, `-latest`, `:free`
fn is_version(rest: &str) -> bool {
    if let Some(tag) = rest.strip_prefix(':') {
        return !tag.is_empty();
    }
    let Some(rest) = rest.strip_prefix('-') else {
        return false;
    };
    rest == "latest" || (rest.len() >= 4 && rest.chars().all(|c| c.is_ascii_digit() || c == '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_table_is_well_formed_and_complete() {
        let known: BundledCatalog = serde_json::from_str(KNOWN).unwrap();
        assert!(
            known.made.parse::<jiff::civil::Date>().is_ok(),
            "{}",
            known.made
        );
        for preset in crate::provider::presets::PRESETS {
            assert!(known.providers.contains_key(preset.id), "{}", preset.id);
        }
        for entry in known.providers.values() {
            for (id, model) in &entry.models {
                let limit = model.limit.unwrap_or_default();
                assert!(
                    limit.context.unwrap_or(0.0) > 0.0 && limit.output.unwrap_or(0.0) > 0.0,
                    "{id}"
                );
                assert!(
                    model
                        .cost
                        .is_some_and(|c| c.input.is_some() && c.output.is_some()),
                    "{id}"
                );
            }
        }
    }

    #[test]
    fn versions_of_a_model_are_found_by_their_family() {
        let catalog = Catalog::default();
        for (provider, model, want) in [
            ("anthropic", "claude-haiku-4-5", Some("claude-haiku")),
            (
                "anthropic",
                "claude-haiku-4-5-20251001",
                Some("claude-haiku"),
            ),
            ("openai", "gpt-5-2025-08-07", Some("gpt")),
            ("openai", "gpt-5-turbo", None),
            ("openrouter", "qwen/qwen3.6-27b:free", Some("qwen")),
            ("nobody", "x", None),
        ] {
            let got = catalog.model(provider, model).and_then(|m| m.family);
            assert_eq!(got.as_deref(), want, "{provider}/{model}");
        }
    }

    #[test]
    fn a_cached_document_comes_first_and_a_broken_one_is_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("models.json");
        std::fs::write(&path, r#"{"acme":{"id":"acme","name":"Acme","env":["ACME_KEY"],"npm":"@ai-sdk/openai-compatible","api":"https://acme.test/v1",
            "models":{"a1":{"id":"a1","name":"A1","limit":{"context":1000,"output":100},"cost":{"input":1,"output":2,"tiers":[]},"extra":1}}}}"#).unwrap();
        let catalog = |own: Option<&Path>| {
            Catalog::new(CatalogOptions {
                file: own.map(Path::to_path_buf),
                of_opencode: Some(path.clone()),
                ..CatalogOptions::default()
            })
        };
        assert_eq!(catalog(None).provider("acme").unwrap().env, ["ACME_KEY"]);
        assert!(catalog(None).provider("anthropic").is_some());
        // Of two copies the newer one is used, unless it is empty.
        let own = dir.path().join("own.json");
        std::fs::write(&own, "").unwrap();
        assert!(catalog(Some(&own)).provider("acme").is_some());
        std::fs::write(&own, r#"{"beta":{"models":{}}}"#).unwrap();
        let later = SystemTime::now() + std::time::Duration::from_secs(60);
        std::fs::File::options()
            .write(true)
            .open(&own)
            .unwrap()
            .set_modified(later)
            .unwrap();
        let both = catalog(Some(&own));
        assert!(both.provider("beta").is_some() && both.provider("acme").is_none());
        std::fs::write(&path, "{").unwrap();
        assert!(catalog(None).provider("anthropic").is_some());
    }
}
