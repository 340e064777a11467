//! The default models.

use outrigger_protocol::message::ModelRef;
use outrigger_protocol::model::ModelInfo;

use super::Models;
use crate::error::ModelError;

/// Families whose newest member is the small model, in this order (OpenCode's list).
const SMALL_FAMILIES: &[&str] = &["gemini-flash", "gpt-nano", "claude-haiku"];
/// Parts of names of preferred default models, in ascending preference (OpenCode's list, with our own sources).
const PREFERRED: &[&str] = &["gpt-5", "claude-sonnet-4", "gemini-3-pro"];

impl Models {
    /// Returns the default model: `model` of the configuration, otherwise the preferred one of the first usable
    /// provider (configured providers precede those that only have a key in the environment).
    ///
    /// # Errors
    /// `model.none` if there is no provider with a model; `model.config` if `model` is not `provider/model`.
    pub fn default_model(&self) -> Result<ModelRef, ModelError> {
        if let Some(text) = &self.inner.options.model {
            return ModelRef::parse(text).ok_or_else(|| ModelError::Config {
                provider: text.clone(),
                message: format!("`model` is \"{text}\", which is not of the form provider/model"),
            });
        }
        for id in self.available_ids() {
            let Some(provider) = self.provider(&id)? else {
                continue;
            };
            if !provider.is_supported() {
                continue;
            }
            let models = provider.models.values();
            let best = preferred(models.filter(|m| m.capabilities.toolcall));
            if let Some(model) = best {
                return Ok(reference(model));
            }
        }
        Err(ModelError::NoModel)
    }

    /// Returns `small_model` of the configuration, if that model exists.
    #[must_use]
    pub fn configured_small_model(&self) -> Option<ModelRef> {
        let model = ModelRef::parse(self.inner.options.small_model.as_deref()?)?;
        self.resolve(&model).is_ok().then_some(model)
    }

    /// Returns the model for small tasks (titles): the configured one, otherwise the newest small one of the same
    /// provider, otherwise the same model. The agent calls the `experimental.provider.small_model` hook between the
    /// first and the second.
    #[must_use]
    pub fn small_model(&self, current: &ModelRef) -> ModelRef {
        self.configured_small_model()
            .or_else(|| {
                let provider = self.provider(&current.provider_id).ok()??;
                let models = provider.models.values();
                SMALL_FAMILIES.iter().find_map(|family| {
                    let best = models
                        .clone()
                        .filter(|m| m.family == *family && m.capabilities.output.text)
                        .max_by(|a, b| (&a.release_date, &a.id).cmp(&(&b.release_date, &b.id)))?;
                    Some(reference(best))
                })
            })
            .unwrap_or_else(|| ModelRef {
                variant: None,
                ..current.clone()
            })
    }
}

/// Returns the default model of a provider, by OpenCode's order.
pub(super) fn preferred<'a>(models: impl Iterator<Item = &'a ModelInfo>) -> Option<&'a ModelInfo> {
    let rank = |name: &str| {
        PREFERRED
            .iter()
            .position(|p| name.contains(p))
            .map_or(0, |p| p + 1)
    };
    models.max_by(|a, b| {
        rank(&a.id)
            .cmp(&rank(&b.id))
            .then_with(|| a.id.contains("latest").cmp(&b.id.contains("latest")))
            .then_with(|| a.id.cmp(&b.id))
    })
}

fn reference(model: &ModelInfo) -> ModelRef {
    ModelRef {
        provider_id: model.provider_id.clone(),
        model_id: model.id.clone(),
        variant: None,
    }
}
