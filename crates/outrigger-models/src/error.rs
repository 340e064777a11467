//! Errors of model requests.

use std::path::PathBuf;
use std::time::Duration;

use outrigger_net::Lookup;
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::message::NamedError;
use serde_json::json;

use crate::transport::error_response::ErrorResponse;
use crate::transport::retry::RetryPolicy;

/// An error of this crate. No variant ever contains an API key: texts from a provider are scrubbed first.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Neither the configuration, the built-in providers nor the catalog know the provider.
    #[error("unknown provider `{provider}`{}", near_text(near))]
    UnknownProvider {
        /// The requested name.
        provider: String,
        /// Similar names.
        near: Vec<String>,
    },
    /// The provider is known, but not the model.
    #[error("provider `{provider}` has no model `{model}`{}", near_text(near))]
    UnknownModel {
        /// Provider.
        provider: String,
        /// The requested name.
        model: String,
        /// Similar names.
        near: Vec<String>,
    },
    /// No model was named and no provider is available to choose one from.
    #[error("no model is configured and no provider has a key")]
    NoModel,
    /// The provider needs a key and there is none.
    #[error("no API key for provider `{provider}`")]
    NoKey {
        /// Provider.
        provider: String,
        /// Environment variables that may hold it.
        env: Vec<String>,
    },
    /// There is a key, but the plugin that implements the provider, or named its URL, may not have it.
    #[error(
        "no API key for provider `{provider}`: yours is not given to the plugin `{plugin}`, which implements the provider or set its address"
    )]
    KeyWithheld {
        /// Provider.
        provider: String,
        /// The plugin.
        plugin: String,
        /// NAME of the `[plugins.NAME]` that grants it.
        name: String,
    },
    /// The provider's npm package has no adapter here.
    #[error("provider `{provider}` uses `{npm}`, which Outrigger does not support")]
    Unsupported {
        /// The provider's npm package has no adapter here.
        provider: String,
        /// The package's name.
        npm: String,
    },
    /// An entry under `provider` in the configuration is invalid.
    #[error("provider `{provider}`: {message}")]
    Config {
        /// Provider.
        provider: String,
        /// The reason.
        message: String,
    },
    /// A login cannot be used, or not for this URL.
    #[error("provider `{provider}`: {message}")]
    Login {
        /// Provider.
        provider: String,
        /// The reason.
        message: String,
    },
    /// 401 or 403.
    #[error(
        "provider `{provider}` refused the API key from {key_source} (status {status}): {message}"
    )]
    Auth {
        /// Provider.
        provider: String,
        /// HTTP status.
        status: u16,
        /// The source of the key, in words.
        key_source: String,
        /// The provider's message.
        message: String,
        /// Its whole response.
        refusal: Option<Box<ErrorResponse>>,
    },
    /// 404: no such model, or the base URL is wrong.
    #[error("provider `{provider}` does not know model `{model}` at {url}: {message}")]
    NotFound {
        /// Provider.
        provider: String,
        /// Model as sent.
        model: String,
        /// The requested URL.
        url: Box<str>,
        /// The provider's message.
        message: String,
        /// Its whole response.
        refusal: Option<Box<ErrorResponse>>,
    },
    /// 429 after all attempts, or a wait that is too long.
    #[error("provider `{provider}` is limiting requests{}: {message}", wait_text(*retry_after))]
    RateLimited {
        /// Provider.
        provider: String,
        /// The requested wait.
        retry_after: Option<Duration>,
        /// The provider's message.
        message: String,
        /// Its whole response.
        refusal: Option<Box<ErrorResponse>>,
    },
    /// The conversation is longer than the model's limit.
    #[error("the conversation is too long for the model of `{provider}`: {message}")]
    ContextOverflow {
        /// Provider.
        provider: String,
        /// The provider's message.
        message: String,
        /// Its whole response.
        refusal: Option<Box<ErrorResponse>>,
    },
    /// Any other refusal by the provider.
    #[error("provider `{provider}` answered with an error{}: {message}", status_text(*status))]
    Api {
        /// Provider.
        provider: String,
        /// HTTP status; absent if the error came inside the stream.
        status: Option<u16>,
        /// The provider's message.
        message: String,
        /// A later attempt may succeed.
        retryable: bool,
        /// Its whole response; absent if the error came inside the stream.
        refusal: Option<Box<ErrorResponse>>,
    },
    /// No connection.
    #[error("cannot reach provider `{provider}` at {url}: {message}")]
    Connect {
        /// Provider.
        provider: String,
        /// The requested URL.
        url: String,
        /// The reason.
        message: String,
        /// How the lookup of its name failed, if it did.
        lookup: Option<Lookup>,
    },
    /// The machine's policy forbids the provider's host.
    #[error("provider `{provider}` was not contacted at {url}: {message}")]
    Forbidden {
        /// Provider.
        provider: String,
        /// Its URL.
        url: String,
        /// The host, and the rule.
        message: String,
    },
    /// The plugin that sends the provider's requests failed.
    #[error(
        "plugin `{plugin}`, which sends the requests of provider `{provider}`, failed: {message}"
    )]
    Fetch {
        /// Provider.
        provider: String,
        /// Plugin.
        plugin: String,
        /// The error.
        message: String,
    },
    /// The plugin that sends the provider's requests did not respond, or its response stalled.
    #[error("plugin `{plugin}`, which sends the requests of provider `{provider}`, was silent for {} s", .after.as_secs_f64())]
    FetchTimeout {
        /// Provider.
        provider: String,
        /// Plugin.
        plugin: String,
        /// The deadline.
        after: Duration,
    },
    /// Nothing arrived for too long after the request was sent.
    #[error("provider `{provider}` sent nothing for {} s after the request", .after.as_secs_f64())]
    FirstByteTimeout {
        /// Provider.
        provider: String,
        /// The deadline.
        after: Duration,
    },
    /// The stream stalled for too long.
    #[error("the answer of provider `{provider}` stalled for {} s", .after.as_secs_f64())]
    IdleTimeout {
        /// Provider.
        provider: String,
        /// The deadline.
        after: Duration,
    },
    /// The request as a whole took too long.
    #[error("the request to provider `{provider}` took longer than {} s", .after.as_secs_f64())]
    TotalTimeout {
        /// Provider.
        provider: String,
        /// The deadline.
        after: Duration,
    },
    /// The stream was interrupted after content had arrived.
    #[error("the answer of provider `{provider}` broke off: {message}")]
    StreamInterrupted {
        /// Provider.
        provider: String,
        /// The reason.
        message: String,
    },
    /// The provider's response has an unexpected form.
    #[error("cannot read the answer of provider `{provider}`: {message}")]
    BadStream {
        /// Provider.
        provider: String,
        /// What and where.
        message: String,
    },
    /// A cassette cannot be read or written.
    #[error("cassette {}: {message}", path.display())]
    Cassette {
        /// The file.
        path: PathBuf,
        /// A cassette cannot be read or written.
        message: String,
    },
    /// A request differs from the recorded one.
    #[error("cassette {}: request {request} differs from the recording at `{pointer}`: recorded {wanted}, got {got}", path.display())]
    CassetteMismatch {
        /// The reason.
        path: PathBuf,
        /// Number of the request, from 1, title requests not counted.
        request: usize,
        /// JSON pointer into the compared view.
        pointer: String,
        /// The recorded value.
        wanted: String,
        /// The actual value.
        got: String,
    },
    /// There are more requests than were recorded.
    #[error("cassette {}: request {request} is not in the recording, which has {recorded}", path.display())]
    CassetteExhausted {
        /// The file.
        path: PathBuf,
        /// Number of the request, from 1.
        request: usize,
        /// The number of recorded requests.
        recorded: usize,
    },
}

fn near_text(near: &[String]) -> String {
    if near.is_empty() {
        return String::new();
    }
    let names: Vec<String> = near.iter().map(|n| format!("`{n}`")).collect();
    format!("; near: {}", names.join(", "))
}

fn wait_text(wait: Option<Duration>) -> String {
    wait.map_or_else(String::new, |w| {
        format!(" (asks to wait {} s)", w.as_secs().max(1))
    })
}

fn status_text(status: Option<u16>) -> String {
    status.map_or_else(String::new, |s| format!(" (status {s})"))
}

impl Diagnose for ModelError {
    fn code(&self) -> &'static str {
        match self {
            Self::UnknownProvider { .. } => "model.unknown_provider",
            Self::UnknownModel { .. } => "model.unknown_model",
            Self::NoModel => "model.none",
            Self::NoKey { .. } => "model.no_key",
            Self::KeyWithheld { .. } => "model.key_withheld",
            Self::Unsupported { .. } => "model.unsupported_provider",
            Self::Config { .. } => "model.config",
            Self::Login { .. } => "model.login",
            Self::Auth { .. } => "model.auth",
            Self::NotFound { .. } => "model.not_found",
            Self::RateLimited { .. } => "model.rate_limited",
            Self::ContextOverflow { .. } => "model.context_overflow",
            Self::Api { .. } => "model.api",
            Self::Connect { .. } => "model.connect",
            Self::Forbidden { .. } => "model.forbidden",
            Self::Fetch { .. } => "model.fetch",
            Self::FetchTimeout { .. } => "model.timeout_fetch",
            Self::FirstByteTimeout { .. } => "model.timeout_first_byte",
            Self::IdleTimeout { .. } => "model.timeout_idle",
            Self::TotalTimeout { .. } => "model.timeout_total",
            Self::StreamInterrupted { .. } => "model.stream_interrupted",
            Self::BadStream { .. } => "model.bad_stream",
            Self::Cassette { .. } => "model.cassette",
            Self::CassetteMismatch { .. } => "model.cassette_mismatch",
            Self::CassetteExhausted { .. } => "model.cassette_exhausted",
        }
    }

    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::UnknownProvider { provider, .. } => format!(
                "check the part before the first slash, or describe it under `provider.{provider}` in opencode.json (npm, options.baseURL, models)"
            ),
            Self::UnknownModel { provider, model, .. } => format!(
                "check the name, or add it under `provider.{provider}.models[\"{model}\"]` in opencode.json"
            ),
            Self::NoModel => "set `model` in opencode.json or use `-m provider/model`, and give the provider's key: `outrigger auth login` stores one, or set its variable, for example ANTHROPIC_API_KEY".into(),
            Self::NoKey { provider, env } if env.is_empty() => {
                format!("`outrigger auth login -p {provider}` stores one, or set `provider.{provider}.options.apiKey` in opencode.json")
            }
            Self::NoKey { provider, env } => format!(
                "`outrigger auth login -p {provider}` stores one, or set {} or `provider.{provider}.options.apiKey` in opencode.json",
                env.join(" or ")
            ),
            Self::KeyWithheld { name, .. } => format!(
                "`model = true` under [plugins.\"{name}\"] in your own outrigger.toml gives it to the plugin (`outrigger plugin grant {name} model`)"
            ),
            Self::Unsupported { .. } => "if the service has an OpenAI-compatible endpoint, set `npm` to \"@ai-sdk/openai-compatible\" and `options.baseURL` to it".into(),
            Self::Login { provider, .. } => format!("`outrigger auth login -p {provider}` logs in again"),
            Self::Auth { key_source, .. } => {
                format!("check {key_source}: the key may be mistyped, revoked, or have no access to this model")
            }
            Self::NotFound { provider, .. } => format!(
                "check the model's name and `provider.{provider}.options.baseURL`"
            ),
            Self::RateLimited { .. } => "wait, or use another model or provider with `-m`".into(),
            Self::ContextOverflow { .. } => "compact the session or start a new one".into(),
            Self::Connect { provider, lookup: Some(_), .. } => format!(
                "check the network, and the host in `provider.{provider}.options.baseURL`"
            ),
            Self::Connect { url, message, provider, .. } if is_refused_locally(url, message) => format!(
                "nothing listens there: start the server, or correct `provider.{provider}.options.baseURL`"
            ),
            Self::Connect { .. } => "check the network, the proxy variables and the provider's base URL".into(),
            Self::FirstByteTimeout { provider, .. } => {
                format!("raise `provider.{provider}.options.headerTimeout` (milliseconds) if the model needs longer")
            }
            Self::IdleTimeout { provider, .. } => {
                format!("raise `provider.{provider}.options.chunkTimeout` (milliseconds) if the model needs longer")
            }
            Self::FetchTimeout { provider, .. } => format!(
                "raise `provider.{provider}.options.headerTimeout` or `chunkTimeout` (milliseconds) if it needs longer, or run without the plugin"
            ),
            Self::TotalTimeout { provider, .. } => {
                format!("raise `provider.{provider}.options.timeout` (milliseconds), or set it to false")
            }
            Self::StreamInterrupted { .. } => "the answer so far is kept; send the prompt again to continue".into(),
            Self::CassetteMismatch { .. } | Self::CassetteExhausted { .. } => {
                "the prompt, the tools or their results are not those of the recording; record it again".into()
            }
            Self::Fetch { .. } => "`outrigger auth login` again may help; `outrigger plugin list` shows the state of the plugin".into(),
            Self::Forbidden { .. } => "use a model of another provider, or ask the administrator of this machine".into(),
            Self::Config { .. } | Self::Api { .. } | Self::BadStream { .. } | Self::Cassette { .. } => {
                return None;
            }
        };
        Some(text)
    }
}

impl ModelError {
    /// Returns whether the same request may succeed later (429, 5xx, no connection, an interrupted stream).
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::RateLimited { .. } | Self::StreamInterrupted { .. } => true,
            Self::Connect { lookup, .. } => *lookup != Some(Lookup::NoAddress),
            Self::Api { retryable, .. } => *retryable,
            _ => false,
        }
    }

    /// Returns how often the request is retried under a policy. Once if no name server answers: without a network that persists, and
    /// the policy's retries take a minute. Twice if nothing listens at a local address: that is enough for a
    /// server that restarts.
    pub(crate) fn max_retries(&self, policy: &RetryPolicy) -> u32 {
        match self {
            Self::Connect {
                lookup: Some(Lookup::NoAnswer),
                ..
            } => policy.max_retries.min(1),
            Self::Connect { url, message, .. } if is_refused_locally(url, message) => {
                policy.max_retries.min(2)
            }
            _ if self.is_retryable() => policy.max_retries,
            _ => 0,
        }
    }

    /// Converts the error to OpenCode's names (`ProviderAuthError`, `APIError`, `UnknownError` …), for clients and plugins in
    /// `session.error` and in an assistant message. The stable code is in `data.code`.
    #[must_use]
    pub fn to_named(&self) -> NamedError {
        let (message, code) = (self.to_string(), self.code());
        let provider = match self {
            Self::Auth { provider, .. }
            | Self::NoKey { provider, .. }
            | Self::Login { provider, .. }
            | Self::KeyWithheld { provider, .. } => Some(provider),
            _ => None,
        };
        let name = match self {
            Self::Auth { .. }
            | Self::NoKey { .. }
            | Self::Login { .. }
            | Self::KeyWithheld { .. } => "ProviderAuthError",
            Self::Api { .. } | Self::NotFound { .. } | Self::RateLimited { .. } => API_ERROR,
            Self::Connect { .. } => API_ERROR,
            Self::ContextOverflow { .. } => "ContextOverflowError",
            _ => "UnknownError",
        };
        let mut data = match provider {
            Some(provider) => {
                json!({"providerID": provider, "message": message, "isRetryable": false, "code": code})
            }
            None if name == API_ERROR => {
                json!({"message": message, "isRetryable": self.is_retryable(), "code": code})
            }
            None => json!({"message": message, "code": code}),
        };
        if let Some(data) = data.as_object_mut() {
            if let Some(status) = self.status() {
                data.insert("statusCode".into(), status.into());
            }
            if let Some(refusal) = self.refusal() {
                refusal.describe(data);
            }
        }
        NamedError {
            name: name.into(),
            data,
        }
    }

    /// Returns the equivalent HTTP status.
    fn status(&self) -> Option<u16> {
        match self {
            Self::Auth { status, .. } => Some(*status),
            Self::Api { status, .. } => *status,
            Self::NotFound { .. } => Some(404),
            Self::RateLimited { .. } => Some(429),
            _ => None,
        }
    }

    /// Returns the provider's response, if there was one.
    fn refusal(&self) -> Option<&ErrorResponse> {
        match self {
            Self::Auth { refusal, .. }
            | Self::NotFound { refusal, .. }
            | Self::RateLimited { refusal, .. }
            | Self::ContextOverflow { refusal, .. }
            | Self::Api { refusal, .. } => refusal.as_deref(),
            _ => None,
        }
    }

    /// Adds the provider's response; other errors are unchanged.
    pub(crate) fn with_refusal(mut self, answer: ErrorResponse) -> Self {
        if let Self::Auth { refusal, .. }
        | Self::NotFound { refusal, .. }
        | Self::RateLimited { refusal, .. }
        | Self::ContextOverflow { refusal, .. }
        | Self::Api { refusal, .. } = &mut self
        {
            *refusal = Some(Box::new(answer));
        }
        self
    }
}

/// OpenCode's name for a response with an error status.
const API_ERROR: &str = "APIError";

/// Returns whether this machine, or one of its network, refused the connection: no server runs there.
fn is_refused_locally(url: &str, message: &str) -> bool {
    let is_local = reqwest::Url::parse(url).is_ok_and(|url| outrigger_net::is_local(&url));
    is_local && message.contains("Connection refused")
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
