//! Models and providers, including those of plugins.

use std::sync::Arc;

use outrigger_config::Loaded;
use outrigger_contributions::providers::providers;
use outrigger_models::{CatalogOptions, IsActive, LoginServers, Models, ModelsOptions, models_url};
use outrigger_permissions::reserved_paths;
use outrigger_plugins::{Plugins, Stage};
use outrigger_protocol::id::PluginId;

use super::bootstrap::Bootstrap;
use super::config_hooks::Configured;
use crate::boot::options::Boot;
use crate::plugin_api::providers::auth;

/// Name of the local copy of the published catalog in the cache folder.
const CATALOG: &str = "models.json";

impl Bootstrap {
    pub(super) fn models(&self, plugins: &Plugins, configured: &Configured) -> Models {
        let models = Models::new(ModelsOptions {
            of_files: configured.file_providers.clone(),
            proxies: providers(&self.config.config.provider, &self.sandboxes),
            is_active: Some(is_active(plugins)),
            ..model_options(&self.boot, &self.config)
        });
        for (provider, plugin) in &configured.speakers {
            let speaker = auth::speaker(plugins, plugin);
            models.overlay(provider, |overlay| overlay.speaker = Some(speaker));
        }
        models
    }
}

/// Returns whether a plugin with a login is active, by the NAME that grants it something.
fn is_active(plugins: &Plugins) -> IsActive {
    let plugins = plugins.clone();
    Arc::new(move |name| {
        let all = plugins.list();
        let mut active = all.iter().filter(|it| !has_ended(it.stage));
        active.any(|it| plugins.grant_name(&PluginId(it.id.clone())).as_deref() == Some(name))
    })
}

fn has_ended(stage: Stage) -> bool {
    matches!(stage, Stage::Failed | Stage::Off | Stage::Skipped)
}

/// Returns where the published catalog is stored and fetched from. OpenCode's variables override the
/// settings.
fn catalog(boot: &Boot, config: &Loaded) -> CatalogOptions {
    let settings = &config.settings.models;
    let variable = |name: &str| boot.env.get(name).filter(|value| !value.is_empty());
    let is_off = variable("OPENCODE_DISABLE_MODELS_FETCH")
        .is_some_and(|value| matches!(value.to_ascii_lowercase().as_str(), "1" | "true"));
    let address = variable("OPENCODE_MODELS_URL").unwrap_or(&settings.catalog_url);
    let cache = &boot.folders.cache;
    let of_opencode = cache.parent().map(|it| it.join(reserved_paths::MODELS));
    match variable("OPENCODE_MODELS_PATH") {
        // A catalog file of the user replaces the others.
        Some(path) => CatalogOptions {
            of_opencode: Some(boot.directory.join(path)),
            ..CatalogOptions::default()
        },
        None => CatalogOptions {
            file: Some(cache.join(CATALOG)),
            of_opencode,
            url: (settings.fetch_catalog && !is_off).then(|| models_url(address)),
            ..CatalogOptions::default()
        },
    }
}

/// Returns the login servers. Only the user, not a project, can replace the real servers (for tests).
fn login_servers(boot: &Boot) -> LoginServers {
    let named = boot.env.get("OUTRIGGER_LOGIN_SERVER");
    let Some(named) = named.filter(|value| !value.is_empty()) else {
        return LoginServers::default();
    };
    LoginServers::stand_in(named).unwrap_or_else(|| {
        tracing::warn!(
            "[auth] OUTRIGGER_LOGIN_SERVER is ignored: it is not a loopback address (http://127.0.0.1:PORT)"
        );
        LoginServers::default()
    })
}

/// Returns the options for the models of the configuration, without plugins.
pub(crate) fn model_options(boot: &Boot, config: &Loaded) -> ModelsOptions {
    ModelsOptions {
        providers: config.config.provider.clone(),
        env: boot.env.clone(),
        catalog: catalog(boot, config),
        model: config.config.model.clone(),
        small_model: config.config.small_model.clone(),
        disabled: config.config.disabled_providers.clone(),
        enabled: config.config.enabled_providers.clone(),
        credentials: boot.credentials(),
        login_servers: login_servers(boot),
        secrets: config.secrets().to_vec(),
        ..ModelsOptions::default()
    }
}
