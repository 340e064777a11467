//! A provider: the joined data of the configuration, the catalog and the environment.

mod build;
mod model;
pub(crate) mod near;
pub(crate) mod presets;
mod shown;
pub(crate) mod withheld;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use outrigger_protocol::Object;
use outrigger_protocol::keys::without_logins;
use outrigger_protocol::model::{ModelInfo, ProviderInfo};
use serde_json::Value;

pub use shown::put_back;

pub(crate) use build::{Sources, build, merged, needs_catalog, string_pairs};

use self::shown::Shown;
use crate::adapters::openai::Dialect;
use crate::cassette::{Player, Recorder};
use crate::cloud::{self, Cloud};
use crate::error::ModelError;
use crate::logins::LoginTokens;
use crate::secret::{REMOVED, Secret, Secrets};
use crate::transport::client::Http;
use crate::transport::fetch::ProviderFetch;
use crate::transport::retry::Deadlines;

/// The protocol of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adapter {
    OpenAi(Dialect),
    Anthropic,
    /// OpenAI's Responses API.
    Responses,
    /// Google's own protocol.
    Gemini,
    /// Amazon Bedrock's Converse API.
    Bedrock,
    /// A plugin's own protocol.
    Plugin,
    Cassette,
}

/// Returns the adapter of an npm package and its built-in base URL.
pub(crate) fn adapter(npm: &str) -> Option<(Adapter, Option<&'static str>)> {
    match npm {
        "cassette" => Some((Adapter::Cassette, None)),
        crate::adapters::plugin::NPM => Some((Adapter::Plugin, None)),
        "@ai-sdk/openai" => Some((
            Adapter::Responses,
            Some(crate::adapters::responses::BASE_URL),
        )),
        // Clouds: the URL is not in the package.
        "@ai-sdk/azure" | "@ai-sdk/amazon-bedrock/mantle" => Some((Adapter::Responses, None)),
        "@ai-sdk/amazon-bedrock" => Some((Adapter::Bedrock, None)),
        "@ai-sdk/google-vertex" => Some((Adapter::Gemini, None)),
        "@ai-sdk/google-vertex/anthropic" => Some((Adapter::Anthropic, None)),
        "@ai-sdk/google" => Some((Adapter::Gemini, Some(crate::adapters::gemini::BASE_URL))),
        "@ai-sdk/anthropic" => Some((
            Adapter::Anthropic,
            Some(crate::adapters::anthropic::BASE_URL),
        )),
        other => crate::adapters::openai::dialect(other).map(|(d, url)| (Adapter::OpenAi(d), url)),
    }
}

/// A key and its source.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) secret: Secret,
    pub(crate) source: String,
}

/// A provider, ready for use. Deliberately without `Debug`: its options contain the key.
pub(crate) struct Provider {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) source: &'static str,
    pub(crate) env: Vec<String>,
    pub(crate) options: Object,
    pub(crate) models: BTreeMap<String, ModelInfo>,
    pub(crate) key: Option<Key>,
    pub(crate) secrets: Secrets,
    /// Headers from `options.headers`.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) deadlines: Deadlines,
    /// Its credential is an OAuth login.
    pub(crate) is_login: bool,
    /// The login for its requests, if one is built in.
    pub(crate) login: Option<Arc<LoginTokens>>,
    /// The URL and authorization of its models in a cloud.
    pub(crate) access: cloud::Access,
    /// It is a plugin's own; `true` if it needs a key.
    pub(crate) own: Option<bool>,
    /// A plugin that sends its requests.
    pub(crate) fetch: Option<Arc<dyn ProviderFetch>>,
    /// The clients for a URL that a plugin named: they can reach what the plugin can.
    pub(crate) proxied: Option<Arc<Http>>,
    /// The recording, for `npm: cassette`, with its position.
    pub(crate) player: OnceLock<Result<Arc<Player>, ModelError>>,
    /// The recorder of its conversations, for `options.record`.
    pub(crate) recorder: OnceLock<Option<Arc<Recorder>>>,
    plain_view: OnceLock<Arc<ProviderInfo>>,
    redacted_view: OnceLock<Arc<ProviderInfo>>,
}

impl Provider {
    /// Returns the provider in the form for hooks, built once. `redact` replaces keys by a placeholder.
    pub(crate) fn view(&self, redact: bool) -> Arc<ProviderInfo> {
        let cell = if redact {
            &self.redacted_view
        } else {
            &self.plain_view
        };
        let shown = Shown(&self.secrets);
        Arc::clone(cell.get_or_init(|| {
            let mut options = self.options.clone();
            if redact {
                shown.options(&mut options);
            }
            let models = self
                .models
                .iter()
                .map(|(id, model)| {
                    let mut value = serde_json::to_value(model).unwrap_or_default();
                    if redact {
                        shown.model(&mut value);
                    }
                    (id.clone(), value)
                })
                .collect();
            Arc::new(ProviderInfo {
                id: self.id.clone(),
                name: self.name.clone(),
                source: self.source.to_owned(),
                env: self.env.clone(),
                options,
                models,
            })
        }))
    }

    /// Returns the source of the key, for messages.
    pub(crate) fn key_source(&self) -> String {
        match (&self.key, &self.login) {
            (Some(key), _) => key.source.clone(),
            (None, Some(login)) => format!("the login at {}", login.service.name()),
            _ if self.env.is_empty() => "nowhere (no key is set)".into(),
            _ => format!("nowhere (set {})", self.env.join(" or ")),
        }
    }

    /// Returns whether this is GitHub Copilot, called by us.
    pub(crate) fn is_copilot(&self) -> bool {
        self.id == presets::COPILOT && self.fetch.is_none()
    }

    fn wrong(&self, message: String) -> ModelError {
        ModelError::Config {
            provider: self.id.clone(),
            message,
        }
    }

    /// Returns the protocol of a model, and the base URL built into its package. Two packages support several protocols.
    pub(crate) fn adapter(&self, model: &ModelInfo) -> Option<Adapter> {
        let (adapter, _) = adapter(&model.api.npm)?;
        let by_completions = self.options.get("useCompletionUrls") == Some(&Value::Bool(true));
        Some(match adapter {
            Adapter::Responses if model.api.npm == "@ai-sdk/azure" && by_completions => {
                Adapter::OpenAi(Dialect::OpenAi)
            }
            // Copilot offers OpenAI's newer models only with this protocol.
            Adapter::OpenAi(_) if self.is_copilot() && is_newer_gpt(&model.api.id) => {
                Adapter::Responses
            }
            other => other,
        })
    }

    /// Returns whether a model may be called without a key. A service without a configured URL is public and needs one; a
    /// configured URL may be a local server that needs none.
    pub(crate) fn works_without_key(&self, model: &ModelInfo) -> bool {
        let has_address = self.options.get("baseURL").is_some();
        match self.own {
            Some(wants_key) => !wants_key,
            None => {
                self.fetch.is_some()
                    || has_address
                    || self.access.is_ready
                    || model.api.npm == "cassette"
            }
        }
    }

    /// Returns the cloud of a model.
    pub(crate) fn cloud(&self, model: &ModelInfo) -> Option<Cloud> {
        Cloud::of(&self.id, &model.api.npm)
    }

    /// Returns the complete URL of a model; `path` is the adapter's path after the base URL.
    pub(crate) fn address(
        &self,
        adapter: Adapter,
        model: &ModelInfo,
        path: &str,
    ) -> Result<String, ModelError> {
        if let Some(login) = &self.login {
            return Ok(login.address(self.base_url(model).ok().as_deref(), path));
        }
        let base = self.options.get("baseURL").and_then(Value::as_str);
        if let Some(cloud) = self.cloud(model) {
            let url = cloud::url(cloud, adapter, &self.access.settings, model, base);
            if let Some(url) = url.map_err(|message| self.wrong(message))? {
                return Ok(url);
            }
        }
        Ok(format!("{}/{path}", self.base_url(model)?))
    }

    /// Returns the base URL of a model: the configured one, the catalog's, or the one built into the package.
    pub(crate) fn base_url(&self, model: &ModelInfo) -> Result<String, ModelError> {
        let configured = self.options.get("baseURL").and_then(Value::as_str);
        let from_model = Some(model.api.url.as_str());
        let built_in = adapter(&model.api.npm).and_then(|(_, url)| url);
        let url = [configured, from_model, built_in]
            .into_iter()
            .flatten()
            .map(|u| u.trim().trim_end_matches('/'))
            .find(|u| !u.is_empty())
            .ok_or_else(|| ModelError::Config {
                provider: self.id.clone(),
                message: format!(
                    "`options.baseURL` is missing, and `{}` has none built in",
                    model.api.npm
                ),
            })?;
        let lower = url.to_ascii_lowercase();
        if !lower.starts_with("http://") && !lower.starts_with("https://") {
            return Err(ModelError::Config {
                provider: self.id.clone(),
                message: format!(
                    "base URL `{}` does not begin with http:// or https://",
                    self.secrets.scrub(url)
                ),
            });
        }
        cloud::fill(url, &self.access.settings).map_err(|message| self.wrong(message))
    }
}

/// Returns whether it is GPT-5 or later, except for the small model of the first generation (OpenCode's rule).
fn is_newer_gpt(id: &str) -> bool {
    let rest = id.strip_prefix("gpt-").unwrap_or_default();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().is_ok_and(|major: u32| major >= 5) && !id.starts_with("gpt-5-mini")
}

/// Returns a model of a provider as described by the catalog.
pub(crate) fn catalog_model(
    provider: &str,
    npm: &str,
    api: &str,
    id: &str,
    entry: &crate::catalog::CatalogModel,
) -> ModelInfo {
    model::from_catalog(&model::Defaults { provider, npm, api }, id, entry)
}

impl Provider {
    /// Returns a model in the form for plugins.
    pub(crate) fn without_secrets(&self, model: &ModelInfo) -> ModelInfo {
        let mut model = model.clone();
        let removed = model.headers.values_mut();
        removed.for_each(|header| *header = REMOVED.into());
        let shown = Shown(&self.secrets);
        shown.options(&mut model.options);
        shown.options(&mut model.variants);
        let shown = self.secrets.scrub_exact(&model.api.url);
        model.api.url = without_logins(&shown, REMOVED).unwrap_or(shown);
        model
    }
}

impl Provider {
    /// Returns the options for the plugin that owns the provider: those that the user set for it, except likely secrets.
    pub(crate) fn options_for_its_plugin(&self) -> Object {
        let mut shown = self.options.clone();
        Shown(&self.secrets).named(&mut shown);
        shown
    }

    /// Returns options of a request in the form for plugins.
    pub(crate) fn options_without_secrets(&self, options: &Object) -> Object {
        let mut shown = options.clone();
        Shown(&self.secrets).options(&mut shown);
        shown
    }
}

/// Reads deadlines from a provider's options, in milliseconds as in OpenCode; `false` disables one.
pub(crate) fn deadlines(options: &Object) -> Deadlines {
    let read = |name: &str, default: Option<Duration>| match options.get(name) {
        Some(Value::Bool(false)) => None,
        Some(value) => value
            .as_f64()
            .filter(|ms| *ms > 0.0)
            .and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok())
            .or(default),
        None => default,
    };
    let default = Deadlines::default();
    Deadlines {
        first_byte: read("headerTimeout", default.first_byte),
        idle: read("chunkTimeout", default.idle),
        total: read("timeout", default.total),
    }
}
