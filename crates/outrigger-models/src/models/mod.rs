//! All providers of a run.

mod choice;
mod resolve;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use outrigger_protocol::Object;
use outrigger_protocol::model::{ModelInfo, ProviderInfo};
use outrigger_stdx::sync::lock;
use serde_json::Value;

use crate::cassette::Recorder;
use crate::catalog::{Catalog, CatalogError, CatalogOptions};
use crate::credentials::{Credentials, Stored};
use crate::error::ModelError;
use crate::logins::{self, LoginServers, LoginTokens, WaitingLogin};
use crate::provider::presets::PRESETS;
use crate::provider::withheld::without_secrets_of;
use crate::provider::{Provider, Sources, build};
use crate::transport::client::Http;
use crate::transport::fetch::Overlay;

/// The sources of providers, keys and models.
#[derive(Clone, Default)]
pub struct ModelsOptions {
    /// The `provider` object of the merged configuration, after the `config` hooks.
    pub providers: Object,
    /// The same from files, the user's and those of a trusted project: before the `config` hooks. A plugin without a right to the
    /// user's keys gets none of the secrets in it for the provider that it implements.
    pub of_files: Object,
    /// The environment for looking up keys.
    pub env: BTreeMap<String, String>,
    /// The published catalog. It is read and fetched only when a provider needs it.
    pub catalog: CatalogOptions,
    /// `model` of the configuration.
    pub model: Option<String>,
    /// `small_model` of the configuration.
    pub small_model: Option<String>,
    /// `disabled_providers` of the configuration.
    pub disabled: Vec<String>,
    /// `enabled_providers` of the configuration: if set, no other is used.
    pub enabled: Option<Vec<String>>,
    /// Stored credentials: a key in them takes precedence over one in the environment, as in OpenCode.
    pub credentials: Credentials,
    /// Returns whether a plugin is active here, by the NAME of [`Stored::by`]. A credential that a plugin's login
    /// stored counts only while it is. `None`: nobody knows, and all count.
    pub is_active: Option<IsActive>,
    /// The login servers and their services.
    pub login_servers: LoginServers,
    /// Record every conversation into this cassette. A provider's `options.record` does the same for that provider.
    pub record: Option<PathBuf>,
    /// Secrets of the configuration, under any key.
    pub secrets: Vec<String>,
    /// Proxies by provider, for providers whose URLs a plugin contributed: their requests use only these.
    pub proxies: BTreeMap<String, String>,
}

/// See [`ModelsOptions::is_active`].
pub type IsActive = Arc<dyn Fn(&str) -> bool + Send + Sync>;

// The configuration and the environment contain keys.
impl std::fmt::Debug for ModelsOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelsOptions")
            .field("providers", &self.providers.keys().collect::<Vec<_>>())
            .field("model", &self.model)
            .field("small_model", &self.small_model)
            .finish_non_exhaustive()
    }
}

/// The providers. Cheap to clone; created without reading or connecting to anything.
#[derive(Clone)]
pub struct Models {
    inner: Arc<ModelsState>,
}

struct ModelsState {
    options: ModelsOptions,
    catalog: Arc<Catalog>,
    http: Arc<Http>,
    /// The clients of providers with a proxy.
    proxied: BTreeMap<String, Arc<Http>>,
    built: Mutex<BTreeMap<String, Arc<Provider>>>,
    overlays: Mutex<BTreeMap<String, Overlay>>,
    recorder: OnceLock<Option<Arc<Recorder>>>,
}

impl std::fmt::Debug for Models {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Models").field(&self.inner.options).finish()
    }
}

impl Models {
    /// Prepares everything without doing anything yet.
    #[must_use]
    pub fn new(options: ModelsOptions) -> Self {
        let catalog = Arc::new(Catalog::new(options.catalog.clone()));
        let proxies = options.proxies.iter();
        let proxied = proxies.map(|(id, proxy)| (id.clone(), Arc::new(Http::through(proxy))));
        Self {
            inner: Arc::new(ModelsState {
                catalog,
                proxied: proxied.collect(),
                options,
                http: Arc::new(Http::default()),
                built: Mutex::default(),
                overlays: Mutex::default(),
                recorder: OnceLock::new(),
            }),
        }
    }

    fn is_enabled(&self, id: &str) -> bool {
        let options = &self.inner.options;
        !options.disabled.iter().any(|d| d == id)
            && options
                .enabled
                .as_ref()
                .is_none_or(|e| e.iter().any(|x| x == id))
    }

    fn provider(&self, id: &str) -> Result<Option<Arc<Provider>>, ModelError> {
        if !self.is_enabled(id) {
            return Ok(None);
        }
        let mut built = lock(&self.inner.built);
        if let Some(found) = built.get(id) {
            return Ok(Some(Arc::clone(found)));
        }
        let overlay = lock(&self.inner.overlays).get(id).cloned();
        let overlay = overlay.unwrap_or_default();
        let options = &self.inner.options;
        let mut configured = options.providers.get(id).map(Cow::Borrowed);
        let (mut env, none) = (&options.env, BTreeMap::new());
        let mut stored = options.credentials.stored(id).filter(|it| self.counts(it));
        if overlay.without_keys().is_some() {
            let of_files = options.of_files.get(id).unwrap_or(&Value::Null);
            configured = configured.map(|it| Cow::Owned(without_secrets_of(of_files, &it)));
            // A plugin's own provider is looked up in the variables granted to the plugin.
            if overlay.own.is_none() {
                env = &none;
            }
        }
        if let Some(speaker) = &overlay.speaker {
            stored = stored.filter(|it| speaker.may_have(it, overlay.own.is_some()));
        }
        let sources = Sources {
            configured: configured.as_deref(),
            catalog: &self.inner.catalog,
            env,
            login: LoginTokens::of(
                id,
                stored.as_ref(),
                &overlay,
                &options.credentials,
                &options.login_servers,
            ),
            credential: stored.map(|it| it.credential),
            overlay,
            secrets: &options.secrets,
        };
        let provider = build(id, &sources)?.map(Arc::new);
        if let Some(provider) = &provider {
            built.insert(id.to_owned(), Arc::clone(provider));
        }
        Ok(provider)
    }

    /// Returns whether a credential is the user's, or of a plugin that is active here.
    fn counts(&self, stored: &Stored) -> bool {
        let (Some(by), Some(is_active)) = (&stored.by, &self.inner.options.is_active) else {
            return true;
        };
        let counts = is_active(by);
        if !counts {
            tracing::warn!(
                "[provider {}] the credential that a login by the plugin {by} stored is not used: that plugin is not active here",
                stored.provider
            );
        }
        counts
    }

    /// Returns every provider whose user key is withheld, and why.
    #[must_use]
    pub fn all_withheld(&self) -> Vec<(String, ModelError)> {
        let ids: Vec<String> = lock(&self.inner.overlays).keys().cloned().collect();
        ids.into_iter()
            .filter_map(|id| self.withheld(&id).map(|why| (id, why)))
            .collect()
    }

    /// Returns whether requests to a provider can be made.
    #[must_use]
    pub fn is_usable(&self, id: &str) -> bool {
        self.provider(id)
            .ok()
            .flatten()
            .is_some_and(|it| it.can_be_used())
    }

    /// Returns why requests to a provider have no key although the user has one for it.
    #[must_use]
    pub fn withheld(&self, id: &str) -> Option<ModelError> {
        // Building a provider may read the catalog: only if that can matter.
        let speaker = lock(&self.inner.overlays).get(id)?.without_keys()?.clone();
        let provider = self.provider(id).ok()??;
        if provider.key.is_some() {
            return None;
        }
        let options = &self.inner.options;
        let configured = || {
            options
                .of_files
                .get(id)?
                .pointer("/options/apiKey")
                .cloned()
        };
        let is_set = |name: &String| options.env.get(name).is_some_and(|it| !it.is_empty());
        // A variable that a plugin's own provider lacks is another grant.
        let in_env = provider.own.is_none() && provider.env.iter().any(is_set);
        let has_key = in_env || options.credentials.get(id).is_some() || configured().is_some();
        has_key.then(|| ModelError::KeyWithheld {
            provider: id.to_owned(),
            plugin: speaker.plugin.clone(),
            name: speaker.name.as_ref().unwrap_or(&speaker.plugin).clone(),
        })
    }

    /// Returns the source and the day of the catalog's data.
    #[must_use]
    pub fn catalog_source(&self) -> String {
        self.inner.catalog.source()
    }

    /// Fetches the published catalog now, and rebuilds providers with it.
    ///
    /// # Errors
    /// [`CatalogError`]; the old one stays.
    pub async fn refresh_catalog(&self) -> Result<(), CatalogError> {
        self.inner.catalog.refresh().await?;
        lock(&self.inner.built).clear();
        Ok(())
    }

    /// Fetches the published catalog in the background if there is no recent one. Nothing waits for it.
    fn keep_catalog_fresh(&self) {
        let inner = Arc::downgrade(&self.inner);
        self.inner.catalog.keep_fresh(move || {
            if let Some(inner) = inner.upgrade() {
                lock(&inner.built).clear();
            }
        });
    }

    /// Returns the stored credentials.
    #[must_use]
    pub fn credentials(&self) -> &Credentials {
        &self.inner.options.credentials
    }

    /// Starts a built-in login with the method of this number. `None`: it has no first step, or does not exist.
    ///
    /// # Errors
    /// The server cannot be reached or refuses, or the callback port is taken.
    pub async fn begin_login(
        &self,
        provider: &str,
        method: usize,
        answers: &BTreeMap<String, String>,
    ) -> Result<Option<WaitingLogin>, String> {
        logins::begin(&self.inner.options.login_servers, provider, method, answers).await
    }

    /// Drops a provider after a change (of its credential, for example): it is rebuilt on the next request.
    pub fn forget(&self, id: &str) {
        lock(&self.inner.built).remove(id);
    }

    /// Changes a plugin's additions to a provider.
    pub fn overlay(&self, id: &str, change: impl FnOnce(&mut Overlay)) {
        change(lock(&self.inner.overlays).entry(id.to_owned()).or_default());
        self.forget(id);
    }

    /// Returns the plugin that implements a provider: it sends the requests, or named their URL, so it controls the model's
    /// answers.
    #[must_use]
    pub fn speaker(&self, id: &str) -> Option<String> {
        let overlays = lock(&self.inner.overlays);
        let speaker = overlays.get(id)?.speaker.as_ref()?;
        Some(speaker.plugin.clone())
    }

    /// Returns the names of usable providers: those configured, in the order of the configuration, then built-in and catalogued
    /// ones with a key or with a plugin that has one.
    fn available_ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.inner.options.providers.keys().cloned().collect();
        let presets = PRESETS.iter().map(|p| p.id.to_owned());
        let of_plugins = self.of_plugins();
        for id in of_plugins
            .into_iter()
            .chain(presets)
            .chain(self.inner.catalog.provider_ids())
        {
            if !ids.contains(&id)
                && self
                    .provider(&id)
                    .is_ok_and(|p| p.is_some_and(|p| p.can_be_used()))
            {
                ids.push(id);
            }
        }
        ids.retain(|id| self.is_enabled(id));
        ids
    }

    /// Returns the providers that plugins have contributed.
    fn of_plugins(&self) -> Vec<String> {
        let overlays = lock(&self.inner.overlays);
        overlays
            .iter()
            .filter(|(_, overlay)| overlay.own.is_some())
            .map(|(id, _)| id.clone())
            .collect()
    }

    /// Returns why plugins may not contribute a provider of this name, if so: it is already known, and its key, if there is one,
    /// is meant for that provider. `npm: "plugin"` in its configuration entry allows it.
    #[must_use]
    pub fn taken(&self, id: &str) -> Option<String> {
        let entry = self.inner.options.providers.get(id);
        if entry
            .and_then(|entry| entry.get("npm"))
            .and_then(Value::as_str)
            == Some(crate::adapters::plugin::NPM)
        {
            return None;
        }
        let says = |key: &str| entry.is_some_and(|entry| entry.get(key).is_some());
        let reached = entry.is_some_and(|entry| entry.pointer("/options/baseURL").is_some());
        if says("npm") || says("api") || says("models") || reached {
            return Some(format!(
                "it is configured (`provider.{id}`); `npm: \"plugin\"` there lets a plugin implement it"
            ));
        }
        let known = PRESETS.iter().any(|preset| preset.id == id)
            || self.inner.catalog.provider(id).is_some();
        known.then(|| "the provider is already known".to_owned())
    }

    /// Returns the usable providers, with keys removed; for lists and the API.
    #[must_use]
    pub fn providers(&self) -> Vec<Arc<ProviderInfo>> {
        let ids = self.available_ids();
        ids.iter()
            .filter_map(|id| self.provider_for_hooks(id, true))
            .collect()
    }

    /// Returns every known provider, usable or not, with keys removed: usable ones first, then the rest by name.
    #[must_use]
    pub fn known(&self) -> Vec<Arc<ProviderInfo>> {
        let mut ids = self.available_ids();
        let presets = PRESETS.iter().map(|p| p.id.to_owned());
        let mut rest: Vec<String> = presets.chain(self.inner.catalog.provider_ids()).collect();
        rest.extend(self.of_plugins());
        rest.sort();
        rest.dedup();
        rest.retain(|id| !ids.contains(id) && self.is_enabled(id));
        ids.extend(rest);
        ids.iter()
            .filter_map(|id| self.provider_for_hooks(id, true))
            .collect()
    }

    /// Returns the default model of each of these providers.
    #[must_use]
    pub fn preferred(&self, ids: &[&str]) -> BTreeMap<String, String> {
        let of = |id: &str| {
            let provider = self.provider(id).ok()??;
            Some(choice::preferred(provider.models.values())?.id.clone())
        };
        ids.iter()
            .filter_map(|id| Some(((*id).to_owned(), of(id)?)))
            .collect()
    }

    /// Returns a provider in the form for hooks: with `options.apiKey` as configured, as in OpenCode, or with keys removed.
    #[must_use]
    pub fn provider_for_hooks(&self, id: &str, redact: bool) -> Option<Arc<ProviderInfo>> {
        Some(self.provider(id).ok()??.view(redact))
    }
}

/// Returns the maximum output tokens of a request: the model's limit, at most 32,000 (OpenCode's cap), or the cap if the limit is
/// unknown.
#[must_use]
pub fn max_output_tokens(model: &ModelInfo) -> u64 {
    const CAP: u64 = 32_000;
    match model.limit.output {
        0 => CAP,
        limit => limit.min(CAP),
    }
}
