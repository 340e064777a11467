//! Models and providers, those of plugins among them.

use outrigger_config::Loaded;
use outrigger_contributions::providers::providers;
use outrigger_models::{Models, ModelsOptions};
use outrigger_permissions::reserved_paths;
use outrigger_plugins::Plugins;

use super::bootstrap::Bootstrap;
use super::config_hooks::Configured;
use crate::boot::options::Boot;
use crate::plugin_api::providers::auth;

impl Bootstrap {
    pub(super) fn models(&self, plugins: &Plugins, configured: &Configured) -> Models {
        let models = Models::new(ModelsOptions {
            users: configured.user_providers.clone(),
            proxies: providers(&self.config.config.provider, &self.sandboxes),
            ..model_options(&self.boot, &self.config)
        });
        for (provider, plugin) in &configured.speakers {
            let speaker = auth::speaker(plugins, plugin);
            models.overlay(provider, |overlay| overlay.speaker = Some(speaker));
        }
        models
    }
}

/// Models as the configuration has them, without plugins.
pub(crate) fn model_options(boot: &Boot, config: &Loaded) -> ModelsOptions {
    ModelsOptions {
        providers: config.config.provider.clone(),
        env: boot.env.clone(),
        cache_file: boot
            .folders
            .cache
            .parent()
            .map(|cache| cache.join(reserved_paths::MODELS)),
        model: config.config.model.clone(),
        small_model: config.config.small_model.clone(),
        disabled: config.config.disabled_providers.clone(),
        enabled: config.config.enabled_providers.clone(),
        credentials: boot.credentials(),
        ..ModelsOptions::default()
    }
}
