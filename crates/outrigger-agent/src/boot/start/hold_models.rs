//! Models that `config` hooks choose: of providers that the user has chosen, unless the plugin has the grant.

use outrigger_contributions::lacking_for_key;
use outrigger_contributions::model_settings::model_pointers;
use outrigger_contributions::providers::names_place;
use outrigger_models::Models;
use outrigger_plugins::Plugins;
use outrigger_protocol::id::PluginId;
use outrigger_protocol::message::ModelRef;
use serde_json::Value;

use super::bootstrap::Bootstrap;
use super::models::model_options;

impl Bootstrap {
    /// The models as the user's settings and variables have them, without plugins.
    pub(super) fn models_of_files(&self) -> Models {
        Models::new(model_options(&self.boot, &self.config))
    }

    /// Restores the models that plugins chose in `value`, if they would be asked with a key that the user has for something
    /// else, or with a plugin's account and not over its proxy. `speakers`: the providers for which a plugin sends the
    /// requests, without keys of the user.
    pub(super) fn hold_models(
        &self,
        plugins: &Plugins,
        value: &mut Value,
        speakers: &[(String, PluginId)],
    ) {
        let mut models = None;
        let entries = value.get("provider").cloned().unwrap_or_default();
        let mut is_held = |model: &str| {
            let Some(model) = ModelRef::parse(model) else {
                return false;
            };
            let provider = &model.provider_id;
            let entry = entries.get(provider);
            let is_elsewhere =
                entry.is_some_and(names_place) && speakers.iter().any(|(it, _)| it == provider);
            if self.config.has_chosen(provider) || is_elsewhere {
                return false;
            }
            let known = self.config.value.pointer("/provider");
            if entry != known.and_then(|it| it.get(provider)) {
                return true;
            }
            // As the user's settings and variables have them: one that cannot be asked has an error of its own.
            models
                .get_or_insert_with(|| self.models_of_files())
                .resolve(&model)
                .is_ok()
        };
        let mut held = Vec::new();
        for (section, pointer) in model_pointers(value) {
            let before = self.config.value.pointer(&pointer);
            let Some(named) = value
                .pointer_mut(&pointer)
                .filter(|it| Some(&**it) != before)
            else {
                continue;
            };
            let Some((_, name)) = lacking_for_key(plugins, section) else {
                continue;
            };
            if named.as_str().is_some_and(&mut is_held) {
                held.push((pointer, named.to_string(), name));
                *named = before.cloned().unwrap_or(Value::Null);
            }
        }
        for (pointer, model, name) in held {
            remove_null(value, &pointer);
            tracing::warn!(
                "[config] a plugin chose {model} at {pointer}, but you have not chosen that provider: it is ignored; `model = true` \
                 under [plugins.\"{name}\"] in your own outrigger.toml allows it"
            );
        }
    }
}

/// Removes a model that was not there before.
fn remove_null(value: &mut Value, pointer: &str) {
    let Some((parent, key)) = pointer.rsplit_once('/') else {
        return;
    };
    if let Some(Value::Object(fields)) = value.pointer_mut(parent)
        && fields.get(key).is_some_and(Value::is_null)
    {
        fields.shift_remove(key);
    }
}
