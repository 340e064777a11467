//! Finds a model, and everything needed to call it.

use std::path::PathBuf;
use std::sync::Arc;

use outrigger_protocol::message::ModelRef;
use outrigger_protocol::model::ModelInfo;
use serde_json::Value;

use super::Models;
use crate::cassette::Recorder;
use crate::error::ModelError;
use crate::provider::near::near;
use crate::provider::presets::PRESETS;
use crate::provider::{Provider, adapter, catalog_model, needs_catalog};
use crate::resolved::Resolved;

impl Models {
    /// Finds a model and everything needed to call it.
    ///
    /// # Errors
    /// `model.unknown_provider`, `model.unknown_model` (both with similar names), `model.no_key`,
    /// `model.unsupported_provider`, `model.config`.
    pub fn resolve(&self, model: &ModelRef) -> Result<Resolved, ModelError> {
        let id = model.provider_id.as_str();
        if !self.is_enabled(id) {
            return Err(ModelError::Config {
                provider: id.to_owned(),
                message: "is switched off by `disabled_providers` or `enabled_providers`".into(),
            });
        }
        let found = self.provider(id)?;
        if self.is_catalogued(id, found.as_deref()) {
            self.keep_catalog_fresh();
        }
        let provider = found.ok_or_else(|| self.unknown_provider(id))?;
        let info = self.find_model(&provider, &model.model_id)?;
        if adapter(&info.api.npm).is_none() {
            return Err(ModelError::Unsupported {
                provider: id.to_owned(),
                npm: info.api.npm,
            });
        }
        if info.api.npm == crate::adapters::plugin::NPM && provider.own.is_none() {
            return Err(ModelError::Config {
                provider: id.to_owned(),
                message: "is implemented by a plugin (`npm: \"plugin\"`), and no running plugin provides it"
                    .into(),
            });
        }
        if provider.key.is_none() && !provider.works_without_key(&info) {
            if let Some(withheld) = self.withheld(id) {
                return Err(withheld);
            }
            return Err(ModelError::NoKey {
                provider: id.to_owned(),
                env: provider.env.clone(),
            });
        }
        let recorder = self.recorder(&provider)?;
        let own = provider.proxied.as_ref();
        let http = Arc::clone(
            own.or_else(|| self.inner.proxied.get(id))
                .unwrap_or(&self.inner.http),
        );
        Ok(Resolved::new(
            info,
            model.variant.clone(),
            provider,
            http,
            recorder,
        ))
    }

    /// Returns whether a provider has a model, listed or by a name of the catalog.
    #[must_use]
    pub fn has_model(&self, id: &str, model: &str) -> bool {
        self.provider(id)
            .ok()
            .flatten()
            .is_some_and(|it| self.find_model(&it, model).is_ok())
    }

    /// Returns whether the catalog has a provider: one described by the configuration or a plugin does not need it.
    fn is_catalogued(&self, id: &str, provider: Option<&Provider>) -> bool {
        provider.is_none_or(|it| it.own.is_none())
            && needs_catalog(self.inner.options.providers.get(id))
    }

    fn recorder(&self, provider: &Provider) -> Result<Option<Arc<Recorder>>, ModelError> {
        let own = match provider.options.get("record") {
            None => None,
            Some(Value::String(path)) => Some(PathBuf::from(path)),
            Some(_) => {
                return Err(ModelError::Config {
                    provider: provider.id.clone(),
                    message: "`options.record` is not a file name".into(),
                });
            }
        };
        let (cell, path) = match own {
            Some(path) => (&provider.recorder, Some(path)),
            None => (&self.inner.recorder, self.inner.options.record.clone()),
        };
        // One recorder per file, so that concurrent responses do not mix.
        Ok(cell
            .get_or_init(|| path.map(|p| Arc::new(Recorder::new(p))))
            .clone())
    }

    fn find_model(&self, provider: &Provider, model: &str) -> Result<ModelInfo, ModelError> {
        if let Some(found) = provider.models.get(model) {
            return Ok(found.clone());
        }
        let configured = self.inner.options.providers.get(&provider.id);
        // A cassette accepts any name unless names are configured.
        if provider.models.is_empty()
            && configured.is_some_and(|c| c.get("npm").is_some_and(|n| n == "cassette"))
        {
            return Ok(catalog_model(
                &provider.id,
                "cassette",
                "",
                model,
                &crate::catalog::CatalogModel::default(),
            ));
        }
        let listed = self
            .inner
            .catalog
            .provider(&provider.id)
            .is_some_and(|p| p.models.contains_key(model));
        let filtered = configured
            .is_some_and(|c| c.get("whitelist").is_some() || c.get("blacklist").is_some());
        if needs_catalog(configured)
            && !listed
            && !filtered
            && let Some(entry) = self.inner.catalog.model(&provider.id, model)
        {
            let first = provider.models.values().next();
            let (npm, url) = first.map_or(("@ai-sdk/openai-compatible", ""), |m| {
                (&m.api.npm, &m.api.url)
            });
            return Ok(catalog_model(&provider.id, npm, url, model, &entry));
        }
        Err(ModelError::UnknownModel {
            provider: provider.id.clone(),
            model: model.to_owned(),
            near: near(model, provider.models.keys().map(String::as_str)),
        })
    }

    fn unknown_provider(&self, id: &str) -> ModelError {
        let known = self.inner.catalog.provider_ids();
        let configured = self.inner.options.providers.keys();
        let presets = PRESETS.iter().map(|p| p.id);
        let mut names: Vec<&str> = configured
            .chain(&known)
            .map(String::as_str)
            .chain(presets)
            .collect();
        names.retain(|n| self.is_enabled(n));
        names.sort_unstable();
        names.dedup();
        ModelError::UnknownProvider {
            provider: id.to_owned(),
            near: near(id, names),
        }
    }
}
