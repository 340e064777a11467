//! Joins configuration, catalog, presets and environment. The rules are OpenCode's (`Provider` in 1.18.33): a configured
//! value overrides the catalog's; models that are not configured come from the catalog.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use outrigger_protocol::Object;
use outrigger_protocol::auth::Credential;
use outrigger_protocol::model::ModelInfo;
use serde_json::Value;

use super::{Key, Provider, adapter, deadlines, model};
use crate::catalog::{Catalog, CatalogProvider};
use crate::cloud::{Access, Cloud};
use crate::error::ModelError;
use crate::logins::LoginTokens;
use crate::provider::presets::{COPILOT, Preset, preset};
use crate::secret::{Secret, Secrets, is_secret_name};
use crate::transport::client::Http;
use crate::transport::fetch::{ContributedProvider, Overlay, Route};

/// The sources of a provider's description.
pub(crate) struct Sources<'a> {
    pub(crate) configured: Option<&'a Value>,
    pub(crate) catalog: &'a Catalog,
    pub(crate) env: &'a BTreeMap<String, String>,
    pub(crate) credential: Option<Credential>,
    /// The login for requests if no key is configured.
    pub(crate) login: Option<Arc<LoginTokens>>,
    pub(crate) overlay: Overlay,
    /// Secrets of the configuration, wherever they are in it.
    pub(crate) secrets: &'a [String],
}

/// Returns whether the catalog is needed for a provider: not if its entry is complete (the catalog may have megabytes, and
/// most runs do not need it).
pub(crate) fn needs_catalog(configured: Option<&Value>) -> bool {
    let Some(entry) = configured else {
        return true;
    };
    if entry.get("npm").and_then(Value::as_str) == Some("cassette") {
        return false;
    }
    let reachable = entry.get("npm").is_some() && entry.pointer("/options/baseURL").is_some();
    let described =
        |m: &Value| m.pointer("/limit/context").is_some() && m.pointer("/limit/output").is_some();
    let models = entry.get("models").and_then(Value::as_object);
    !(reachable && models.is_some_and(|m| !m.is_empty() && m.values().all(described)))
}

/// Builds a provider. `None` if it is unknown.
pub(crate) fn build(id: &str, sources: &Sources<'_>) -> Result<Option<Provider>, ModelError> {
    let own = sources.overlay.own.as_ref();
    let known = (needs_catalog(sources.configured) && own.is_none())
        .then(|| sources.catalog.provider(id))
        .flatten();
    let preset = preset(id);
    if sources.configured.is_none() && known.is_none() && preset.is_none() && own.is_none() {
        return Ok(None);
    }
    let entry = Entry::of(id, sources.configured)?;
    let description = Description {
        entry: &entry,
        own,
        known: known.as_deref(),
        preset,
    };
    let configured = entry.options()?;
    let overlay = &sources.overlay;
    let proxied = entry.proxied(overlay.route(&configured))?;
    let options = merged(overlay.loaded(), configured);
    let env = description.env();
    // What the plugin may not see, it does not get as a key either.
    let granted = own.map_or(&env, |own| &own.granted);
    let (npm, api) = description.package();
    let cloud = Cloud::of(id, &npm);
    let key = find_key(&options, sources, &key_names(cloud, granted));
    let defaults = model::Defaults {
        provider: id,
        npm: &npm,
        api: &api,
    };
    let login = sources.login.as_ref().filter(|_| key.is_none());
    let models = models(&defaults, &entry, overlay, login, known.as_deref());
    let (headers, secrets) = headers_and_secrets(&options, key.as_ref(), sources, models.values());
    Ok(Some(Provider {
        id: id.to_owned(),
        name: description.name(),
        source: source(sources, &options, key.as_ref()),
        own: own.map(|own| !own.env.is_empty()),
        access: Access::of(cloud, login, &options, sources.env, key.is_some()),
        login: login.cloned(),
        fetch: overlay.fetch.clone(),
        proxied,
        is_login: matches!(sources.credential, Some(Credential::Oauth { .. })),
        env,
        deadlines: deadlines(&options),
        options,
        models,
        key,
        secrets,
        headers,
        player: OnceLock::new(),
        recorder: OnceLock::new(),
        plain_view: OnceLock::new(),
        redacted_view: OnceLock::new(),
    }))
}

/// A provider's configuration entry.
struct Entry<'a> {
    id: &'a str,
    keys: Option<&'a Object>,
}

impl<'a> Entry<'a> {
    fn of(id: &'a str, value: Option<&'a Value>) -> Result<Self, ModelError> {
        let keys = value.and_then(Value::as_object);
        let entry = Self { id, keys };
        if value.is_some() && keys.is_none() {
            Err(entry.wrong("the entry is not an object"))
        } else {
            Ok(entry)
        }
    }

    fn wrong(&self, message: &str) -> ModelError {
        ModelError::Config {
            provider: self.id.to_owned(),
            message: message.to_owned(),
        }
    }

    fn text(&self, key: &str) -> Option<String> {
        self.keys
            .and_then(|keys| keys.get(key))
            .and_then(Value::as_str)
            .map(str::to_owned)
    }

    /// Returns the clients for its requests, if a plugin named the route.
    fn proxied(&self, route: Option<&Route>) -> Result<Option<Arc<Http>>, ModelError> {
        match route {
            Some(Route::Refused(why)) => Err(self.wrong(why)),
            Some(Route::Proxy(proxy)) => Ok(Some(Arc::new(Http::through(proxy)))),
            None => Ok(None),
        }
    }

    fn options(&self) -> Result<Object, ModelError> {
        match self.keys.and_then(|keys| keys.get("options")) {
            None => Ok(Object::new()),
            Some(Value::Object(options)) => Ok(options.clone()),
            Some(_) => Err(self.wrong("`options` is not an object")),
        }
    }
}

/// The description of a provider: by the user, by its plugin, by the catalog, by us.
struct Description<'a> {
    entry: &'a Entry<'a>,
    own: Option<&'a ContributedProvider>,
    known: Option<&'a CatalogProvider>,
    preset: Option<&'a Preset>,
}

impl Description<'_> {
    fn name(&self) -> String {
        let preset = || self.preset.map(|it| it.name.to_owned());
        self.entry
            .text("name")
            .or_else(|| self.known.and_then(|it| it.name.clone()))
            .or_else(preset)
            .or_else(|| self.own.and_then(|it| it.name.clone()))
            .unwrap_or_else(|| self.entry.id.to_owned())
    }

    /// Returns the npm package, which determines the adapter, and the base URL outside `options`; empty if unknown.
    fn package(&self) -> (String, String) {
        if self.own.is_some() {
            return (crate::adapters::plugin::NPM.to_owned(), String::new());
        }
        let preset = self.preset;
        let npm = (self.entry.text("npm"))
            .or_else(|| self.known.and_then(|it| it.npm.clone()))
            .or_else(|| preset.map(|it| it.npm.to_owned()))
            .unwrap_or_else(|| "@ai-sdk/openai-compatible".to_owned());
        let api = (self.entry.text("api"))
            .or_else(|| self.known.and_then(|it| it.api.clone()))
            .or_else(|| preset.and_then(|it| it.api.map(str::to_owned)))
            .unwrap_or_default();
        (npm, api)
    }

    /// Variables that may hold its key.
    fn env(&self) -> Vec<String> {
        if let Some(own) = self.own {
            return own.env.clone();
        }
        // The catalog names GITHUB_TOKEN, which usually has another purpose and lacks the rights.
        if self.entry.id == COPILOT {
            return Vec::new();
        }
        let configured = self.entry.keys.and_then(|keys| keys.get("env"));
        if let Some(names) = configured.and_then(Value::as_array) {
            let names = names.iter().filter_map(Value::as_str);
            return names.map(str::to_owned).collect();
        }
        match self.known {
            Some(known) if !known.env.is_empty() => known.env.clone(),
            _ => {
                let names = self.preset.map(|it| it.env).unwrap_or_default();
                names.iter().map(|it| (*it).to_owned()).collect()
            }
        }
    }
}

/// Returns the models: those listed by a plugin or the catalog, overridden by the configuration.
fn models(
    defaults: &model::Defaults<'_>,
    entry: &Entry<'_>,
    overlay: &Overlay,
    login: Option<&Arc<LoginTokens>>,
    known: Option<&CatalogProvider>,
) -> BTreeMap<String, ModelInfo> {
    let mut base = match &overlay.models {
        Some(listed) => model::from_plugin(defaults, listed),
        None => model::catalogued(defaults, known),
    };
    if let Some(login) = login {
        login.service.adapt(&mut base);
    }
    model::models(defaults, entry.keys, base)
}

/// Returns the variables that may contain a key: of those that the catalog names for a cloud, not all do.
fn key_names(cloud: Option<Cloud>, names: &[String]) -> Vec<String> {
    let is_key = |name: &&String| cloud.is_none_or(|cloud| cloud.is_key(name));
    names.iter().filter(is_key).cloned().collect()
}

// OpenCode's precedence: a configuration entry, a plugin, a stored key, a variable.
fn source(sources: &Sources<'_>, options: &Object, key: Option<&Key>) -> &'static str {
    let has_api_key = options.get("apiKey").is_some();
    if sources.configured.is_some() {
        return "config";
    }
    match (&sources.credential, key) {
        (Some(Credential::Api { .. }), _) => "api",
        (_, Some(_)) if !has_api_key => "env",
        _ => "custom",
    }
}

/// Merges `over` into `under`: objects are merged, otherwise `over` wins.
pub(crate) fn merged(mut under: Object, over: Object) -> Object {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                *old = merged(std::mem::take(old), new);
            }
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
    under
}

fn find_key(options: &Object, sources: &Sources<'_>, names: &[String]) -> Option<Key> {
    let configured = options.get("apiKey").and_then(Value::as_str).map(str::trim);
    if let Some(key) = configured.filter(|k| !k.is_empty()) {
        let owner = sources.overlay.fetch.as_ref().map(|fetch| fetch.plugin());
        return Some(Key {
            secret: Secret::new(key),
            source: match owner {
                Some(plugin) => format!("the plugin {plugin}"),
                None => "`options.apiKey` in the configuration".into(),
            },
        });
    }
    if let Some(Credential::Api { key, .. }) = &sources.credential
        && !key.trim().is_empty()
    {
        return Some(Key {
            secret: Secret::new(key.trim()),
            source: "`outrigger auth login`".into(),
        });
    }
    if sources.login.is_some() {
        return None;
    }
    // A plugin's own provider gets the token of its login; for others, the plugin that owns the login has it.
    if let (Some(Credential::Oauth { access, .. }), Some(_)) =
        (&sources.credential, &sources.overlay.own)
        && !access.trim().is_empty()
    {
        return Some(Key {
            secret: Secret::new(access.trim()),
            source: "`outrigger auth login`".into(),
        });
    }
    let env = sources.env;
    names.iter().find_map(|name| {
        let value = env.get(name).map(|v| v.trim()).filter(|v| !v.is_empty())?;
        Some(Key {
            secret: Secret::new(value),
            source: format!("the environment variable {name}"),
        })
    })
}

fn headers_and_secrets<'a>(
    options: &Object,
    key: Option<&Key>,
    sources: &Sources<'_>,
    models: impl Iterator<Item = &'a ModelInfo>,
) -> (Vec<(String, String)>, Secrets) {
    let headers = string_pairs(options.get("headers").and_then(Value::as_object));
    let mut secrets = Secrets::default();
    if let Some(key) = key {
        secrets.add(&key.secret);
    }
    let stored = sources.credential.iter().flat_map(Credential::secrets);
    for secret in stored {
        secrets.add(&Secret::new(secret));
    }
    for known in sources.secrets {
        secrets.add(&Secret::new(known.as_str()));
    }
    let from_models = models.flat_map(|m| string_pairs(Some(&m.headers)));
    for (name, value) in headers.iter().cloned().chain(from_models) {
        if is_secret_name(&name) {
            secrets.add(&Secret::new(value.trim_start_matches("Bearer ")));
        }
    }
    (headers, secrets)
}

/// Returns the entries of an object whose values are strings.
pub(crate) fn string_pairs(map: Option<&Object>) -> Vec<(String, String)> {
    map.into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect()
}

impl Provider {
    /// Returns whether there is a key for it, or a plugin that implements it.
    pub(crate) fn can_be_used(&self) -> bool {
        match self.own {
            Some(wants_key) => self.key.is_some() || !wants_key,
            None => self.key.is_some() || self.fetch.is_some() || self.access.is_ready,
        }
    }

    /// Returns whether any of its models has an adapter.
    pub(crate) fn is_supported(&self) -> bool {
        self.models.is_empty() || self.models.values().any(|m| adapter(&m.api.npm).is_some())
    }
}
