//! All providers of a run.

mod choice;
mod resolve;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use outrigger_files::sync::lock;
use outrigger_protocol::Object;
use outrigger_protocol::model::{Cost, ModelInfo, ProviderInfo, Usage};
use serde_json::Value;

use crate::cassette::Recorder;
use crate::catalog::{Catalog, CatalogError, CatalogOptions};
use crate::credentials::Credentials;
use crate::error::ModelError;
use crate::logins::{self, LoginServers, LoginTokens, WaitingLogin};
use crate::provider::presets::PRESETS;
use crate::provider::withheld::without_secrets_of;
use crate::provider::{Provider, Sources, build};
use crate::transport::client::Http;
use crate::transport::fetch::Overlay;

/// Where providers, keys and models come from.
#[derive(Clone, Default)]
pub struct ModelsOptions {
    /// The `provider` object of the merged configuration, after the `config` hooks.
    pub providers: Object,
    /// The same as files have it, the user's and those of a trusted project: before the `config` hooks. What a plugin that has no
    /// right to the user's keys speaks for is sent none of the secrets in it.
    pub of_files: Object,
    /// The environment that keys are looked up in.
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
    /// Stored credentials: a key here goes before one in the environment, as in OpenCode.
    pub credentials: Credentials,
    /// Where one logs in, and what a login is for.
    pub login_servers: LoginServers,
    /// Record every conversation into this cassette. A provider's `options.record` does the same for that provider.
    pub record: Option<PathBuf>,
    /// Secrets of the configuration, whatever the keys are called that they stand under.
    pub secrets: Vec<String>,
    /// The proxies of providers whose addresses a plugin contributed, by provider: requests to these go through them
    /// only.
    pub proxies: BTreeMap<String, String>,
}

// The configuration and the environment hold keys.
impl std::fmt::Debug for ModelsOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelsOptions")
            .field("providers", &self.providers.keys().collect::<Vec<_>>())
            .field("model", &self.model)
            .field("small_model", &self.small_model)
            .finish_non_exhaustive()
    }
}

/// The providers. Cheap to clone; made without reading or connecting to anything.
#[derive(Clone)]
pub struct Models {
    inner: Arc<ModelsState>,
}

struct ModelsState {
    options: ModelsOptions,
    catalog: Arc<Catalog>,
    http: Arc<Http>,
    /// Those of providers that have a proxy.
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
    /// Prepares everything and does nothing yet.
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
        let mut stored = options.credentials.stored(id);
        if overlay.without_keys().is_some() {
            let of_files = options.of_files.get(id).unwrap_or(&Value::Null);
            configured = configured.map(|it| Cow::Owned(without_secrets_of(of_files, &it)));
            // A provider of the plugin's own is looked up in the variables that were granted to the plugin.
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
                (&options.credentials, &options.login_servers),
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

    /// Every provider of which the user's key is not used, and why.
    #[must_use]
    pub fn all_withheld(&self) -> Vec<(String, ModelError)> {
        let ids: Vec<String> = lock(&self.inner.overlays).keys().cloned().collect();
        ids.into_iter()
            .filter_map(|id| self.withheld(&id).map(|why| (id, why)))
            .collect()
    }

    /// Why requests to a provider have no key although the user has one for it.
    #[must_use]
    pub fn withheld(&self, id: &str) -> Option<ModelError> {
        // To put a provider together may read the catalog: only where that can matter.
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
        // What of the environment a plugin's own provider lacks is another grant.
        let in_env = provider.own.is_none() && provider.env.iter().any(is_set);
        let has_key = in_env || options.credentials.get(id).is_some() || configured().is_some();
        has_key.then(|| ModelError::KeyWithheld {
            provider: id.to_owned(),
            plugin: speaker.plugin.clone(),
            name: speaker.name.as_ref().unwrap_or(&speaker.plugin).clone(),
        })
    }

    /// Where the catalog's facts come from, and of which day.
    #[must_use]
    pub fn catalog_source(&self) -> String {
        self.inner.catalog.source()
    }

    /// Fetches the published catalog now, and puts providers together again with it.
    ///
    /// # Errors [`CatalogError`]; the old one stays.
    pub async fn refresh_catalog(&self) -> Result<(), CatalogError> {
        self.inner.catalog.refresh().await?;
        lock(&self.inner.built).clear();
        Ok(())
    }

    /// Fetches the published catalog in the background where one of these days' is missing. Nobody waits for it.
    fn keep_catalog_fresh(&self) {
        let inner = Arc::downgrade(&self.inner);
        self.inner.catalog.keep_fresh(move || {
            if let Some(inner) = inner.upgrade() {
                lock(&inner.built).clear();
            }
        });
    }

    /// The stored credentials.
    #[must_use]
    pub fn credentials(&self) -> &Credentials {
        &self.inner.options.credentials
    }

    /// Begins a built-in login by the method of this number. `None`: it has nothing to begin with, or is not there.
    ///
    /// # Errors
    /// The server cannot be asked or refuses, or the port that the browser comes back to is taken.
    pub async fn begin_login(
        &self,
        provider: &str,
        method: usize,
        answers: &BTreeMap<String, String>,
    ) -> Result<Option<WaitingLogin>, String> {
        logins::begin(&self.inner.options.login_servers, provider, method, answers).await
    }

    /// Something about this provider has changed (its credential, say): it is put together again when next asked for.
    pub fn forget(&self, id: &str) {
        lock(&self.inner.built).remove(id);
    }

    /// Changes what a plugin adds to a provider.
    pub fn overlay(&self, id: &str, change: impl FnOnce(&mut Overlay)) {
        change(lock(&self.inner.overlays).entry(id.to_owned()).or_default());
        self.forget(id);
    }

    /// The plugin that speaks for a provider: it sends the requests, or said where they go, so that what the model answers is
    /// its word.
    #[must_use]
    pub fn speaker(&self, id: &str) -> Option<String> {
        let overlays = lock(&self.inner.overlays);
        let speaker = overlays.get(id)?.speaker.as_ref()?;
        Some(speaker.plugin.clone())
    }

    /// Names of the providers that can be used: those configured, in the order of the configuration, then built-in
    /// and catalogued ones with a key or with a plugin that has one.
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

    /// Providers that plugins have contributed.
    fn of_plugins(&self) -> Vec<String> {
        let overlays = lock(&self.inner.overlays);
        let own = overlays.iter().filter(|(_, overlay)| overlay.own.is_some());
        own.map(|(id, _)| id.clone()).collect()
    }

    /// Why no plugin may contribute a provider of this name, if so: it is known already, and its key, if there is one,
    /// is meant for that provider. `npm: "plugin"` in its entry of the configuration allows it.
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
                "it is configured (`provider.{id}`); `npm: \"plugin\"` there would let a plugin speak for it"
            ));
        }
        let known = PRESETS.iter().any(|preset| preset.id == id)
            || self.inner.catalog.provider(id).is_some();
        known.then(|| "it is a provider that is known already".to_owned())
    }

    /// The providers that can be used, with keys removed; for lists and the API.
    #[must_use]
    pub fn providers(&self) -> Vec<Arc<ProviderInfo>> {
        let ids = self.available_ids();
        ids.iter()
            .filter_map(|id| self.provider_for_hooks(id, true))
            .collect()
    }

    /// Every provider that is known, whether it can be used or not, with keys removed: those that can be used, then the
    /// rest by name.
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

    /// The model that stands for each of these providers when none is named.
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

    /// A provider as hooks get it: with `options.apiKey` as configured, as OpenCode has it, or with keys removed.
    #[must_use]
    pub fn provider_for_hooks(&self, id: &str, redact: bool) -> Option<Arc<ProviderInfo>> {
        Some(self.provider(id).ok()??.view(redact))
    }
}

/// What a request cost, in US dollars. Cache reads and writes are part of `usage.input` and have prices of their own.
#[must_use]
pub fn cost(usage: &Usage, prices: &Cost) -> f64 {
    let plain = usage
        .input
        .saturating_sub(usage.cache_read)
        .saturating_sub(usage.cache_write);
    #[expect(
        clippy::cast_precision_loss,
        reason = "token counts are far below 2^53"
    )]
    let price = |tokens: u64, price: f64| tokens as f64 * price / 1_000_000.0;
    price(plain, prices.input)
        + price(usage.output, prices.output)
        + price(usage.cache_read, prices.cache.read)
        + price(usage.cache_write, prices.cache.write)
}

/// Limit of output tokens of a request: what the model can do, at most 32,000 (OpenCode's cap), or the cap when the
/// limit is unknown.
#[must_use]
pub fn max_output_tokens(model: &ModelInfo) -> u64 {
    const CAP: u64 = 32_000;
    match model.limit.output {
        0 => CAP,
        limit => limit.min(CAP),
    }
}
