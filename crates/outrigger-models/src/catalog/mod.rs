//! Limits, prices and abilities of models that the configuration does not describe.
//!
//! Two sources in the same form, that of <https://models.dev/api.json>: OpenCode's cached copy, if there is one, and
//! a small committed table. Both are read when a model is first looked up in them, never before.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value;

/// The committed table: current models of the built-in providers as models.dev listed them when it was made.
const FAMILIES: &str = include_str!("families.json");

/// A provider of the catalog.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CatalogProvider {
    pub(crate) name: Option<String>,
    pub(crate) env: Vec<String>,
    pub(crate) npm: Option<String>,
    pub(crate) api: Option<String>,
    pub(crate) models: BTreeMap<String, CatalogModel>,
}

/// A model of the catalog. Everything is optional, as the document is not ours.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct CatalogModel {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) family: Option<String>,
    pub(crate) attachment: Option<bool>,
    pub(crate) reasoning: Option<bool>,
    pub(crate) tool_call: Option<bool>,
    pub(crate) temperature: Option<bool>,
    pub(crate) release_date: Option<String>,
    pub(crate) status: Option<String>,
    pub(crate) modalities: Option<CatalogModalities>,
    pub(crate) interleaved: Option<Value>,
    pub(crate) limit: Option<CatalogLimit>,
    pub(crate) cost: Option<CatalogCost>,
    pub(crate) provider: Option<CatalogApi>,
}

/// Kinds of content by name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct CatalogModalities {
    pub(crate) input: Option<Vec<String>>,
    pub(crate) output: Option<Vec<String>>,
}

/// Tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct CatalogLimit {
    pub(crate) context: Option<f64>,
    pub(crate) input: Option<f64>,
    pub(crate) output: Option<f64>,
}

/// US dollars for a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct CatalogCost {
    pub(crate) input: Option<f64>,
    pub(crate) output: Option<f64>,
    pub(crate) cache_read: Option<f64>,
    pub(crate) cache_write: Option<f64>,
}

/// A model that is reached differently from its provider's others.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct CatalogApi {
    pub(crate) npm: Option<String>,
    pub(crate) api: Option<String>,
}

type Table = BTreeMap<String, CatalogProvider>;

/// Both sources.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    cache_file: Option<PathBuf>,
    cache: OnceLock<Table>,
    families: OnceLock<Table>,
}

impl Catalog {
    /// A catalog whose first source is `cache_file`, if that exists.
    pub(crate) fn new(cache_file: Option<PathBuf>) -> Self {
        Self {
            cache_file,
            ..Self::default()
        }
    }

    fn cached(&self) -> &Table {
        self.cache.get_or_init(|| {
            let Some(path) = &self.cache_file else {
                return Table::new();
            };
            // An empty one is what we make where there is none.
            let text = outrigger_files::read(path, outrigger_files::DATA).unwrap_or_default();
            if text.is_empty() {
                return Table::new();
            }
            serde_json::from_slice(&text).unwrap_or_else(|error| {
                tracing::warn!(path = %path.display(), %error, "the cached model catalog cannot be read; using the built-in table");
                Table::new()
            })
        })
    }

    fn built_in(&self) -> &Table {
        self.families.get_or_init(|| {
            // A test makes sure that the committed table is well-formed.
            serde_json::from_str(FAMILIES).unwrap_or_default()
        })
    }

    /// What is known of a provider.
    pub(crate) fn provider(&self, id: &str) -> Option<&CatalogProvider> {
        self.cached().get(id).or_else(|| self.built_in().get(id))
    }

    /// Names of all providers known.
    pub(crate) fn provider_ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = self
            .cached()
            .keys()
            .chain(self.built_in().keys())
            .cloned()
            .collect();
        ids.sort();
        ids.dedup();
        ids
    }

    /// The entry of a model, or of the member of its family that it is a dated or tagged version of
    /// (`claude-haiku-4-5-20251001`, `qwen/qwen3-coder:free`, `gpt-5-2025-08-07`).
    pub(crate) fn model(&self, provider: &str, model: &str) -> Option<CatalogModel> {
        let models = &self.provider(provider)?.models;
        if let Some(found) = models.get(model) {
            return Some(found.clone());
        }
        let base = models
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
        let table: Table = serde_json::from_str(FAMILIES).unwrap();
        for (provider, entry) in &table {
            assert!(
                crate::provider::presets::preset(provider).is_some(),
                "{provider} is not built in"
            );
            for (id, model) in &entry.models {
                let limit = model.limit.unwrap_or_default();
                assert_eq!(model.id.as_deref(), Some(id.as_str()));
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
            ("openrouter", "qwen/qwen3-coder:free", Some("qwen")),
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
        let catalog = Catalog::new(Some(path.clone()));
        assert_eq!(catalog.provider("acme").unwrap().env, ["ACME_KEY"]);
        assert!(catalog.provider("anthropic").is_some());
        std::fs::write(&path, "{").unwrap();
        assert!(Catalog::new(Some(path)).provider("anthropic").is_some());
    }
}
