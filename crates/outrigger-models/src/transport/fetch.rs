//! Requests of a provider that are sent by a plugin: the `fetch` returned by its `auth.loader`.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use outrigger_protocol::Object;
use outrigger_protocol::model::PLACE_OPTIONS;
use serde_json::Value;

use crate::provider::withheld::Speaker;

/// A request in the form in which the AI SDK's package would pass it to `fetch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchRequest {
    /// Method, `POST`.
    pub method: String,
    /// Complete URL.
    pub url: String,
    /// Headers in order.
    pub headers: Vec<(String, String)>,
    /// Body, always text.
    pub body: String,
}

/// The head of a response, and its body.
pub struct FetchResponse {
    /// HTTP status.
    pub status: u16,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// Pieces of the body. Dropping it cancels the request. Nothing follows an error.
    pub body: BoxStream<'static, Result<Bytes, String>>,
}

impl fmt::Debug for FetchResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchResponse")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// Sends requests of one provider. Dropping the future cancels the request.
pub trait ProviderFetch: Send + Sync {
    /// Sends a request; the error is a text without secrets.
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'static, Result<FetchResponse, String>>;
    /// Returns the plugin's name, for messages.
    fn plugin(&self) -> &str;
}

/// Options of a provider that name files of this program: only the user may set them.
pub const FILES: [&str; 2] = ["record", "file"];

const BASE_URL: &str = "baseURL";
const ENDPOINT: &str = "endpoint";

/// Returns whether options of a provider set its URL.
#[must_use]
pub fn names_place(options: &Object) -> bool {
    let mut names = PLACE_OPTIONS.iter().chain([&BASE_URL]);
    names.any(|it| options.contains_key(*it))
}

/// The route to a URL that a plugin named.
#[derive(Clone, PartialEq, Eq)]
pub enum Route {
    /// Through this proxy, whose URL includes its credentials.
    Proxy(String),
    /// Forbidden, for this reason.
    Refused(String),
}

/// A plugin's additions to a provider.
#[derive(Clone, Default)]
pub struct Overlay {
    /// The result of its `auth.loader`, without `fetch`; the configuration's options override these, as in OpenCode.
    pub options: Option<Object>,
    /// The route to the `baseURL` in `options`.
    pub options_route: Option<Route>,
    /// The `fetch` in that result.
    pub fetch: Option<Arc<dyn ProviderFetch>>,
    /// The models from its `provider` hook, which replace the catalog's.
    pub models: Option<serde_json::Map<String, Value>>,
    /// The route to the URLs in `models`.
    pub models_route: Option<Route>,
    /// It is the plugin's own provider, and `fetch` implements its protocol (B8).
    pub own: Option<ContributedProvider>,
    /// The plugin that implements the provider, or named the URL of its requests.
    pub speaker: Option<Speaker>,
}

impl Overlay {
    /// Returns the plugin that implements the provider, if it may not have the user's keys. A provider of the user's own plugin
    /// has keys that the user gave to the plugin.
    pub(crate) fn without_keys(&self) -> Option<&Speaker> {
        let speaker = self.speaker.as_ref()?;
        let is_users = self.own.is_some() && !speaker.of_project;
        (!speaker.has_keys && !is_users).then_some(speaker)
    }

    /// Returns the loader's result, except for what plugins may not set.
    pub(crate) fn loaded(&self) -> Object {
        let mut loaded = self.options.clone().unwrap_or_default();
        loaded.retain(|key, _| !FILES.contains(&key.as_str()));
        loaded
    }

    /// Returns the route to the provider, if the URL is a plugin's. `configured` are the options of the configuration.
    pub(crate) fn route(&self, configured: &Object) -> Option<&Route> {
        let is_named = |options: &Object, key: &str| options.get(key).is_some_and(Value::is_string);
        let by_loader = |key: &str| {
            let loaded = self.options.as_ref();
            loaded.is_some_and(|it| is_named(it, key)) && !is_named(configured, key)
        };
        if self.fetch.is_some() {
            return None;
        }
        // A Bedrock endpoint takes precedence over a URL; other location options do not.
        match is_named(configured, BASE_URL) {
            true if by_loader(ENDPOINT) => self.options_route.as_ref(),
            true => None,
            false if is_named(configured, ENDPOINT) => None,
            false
                if PLACE_OPTIONS
                    .iter()
                    .chain([&BASE_URL])
                    .any(|it| by_loader(it)) =>
            {
                self.options_route.as_ref()
            }
            false => self.models_route.as_ref(),
        }
    }
}

/// A provider that a plugin contributes, with its own protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContributedProvider {
    /// Its display name.
    pub name: Option<String>,
    /// Variables that may hold its key. Without any it wants none.
    pub env: Vec<String>,
    /// Those of them that the plugin may see: its key is looked up only in these.
    pub granted: Vec<String>,
}

// The options may contain keys.
impl fmt::Debug for Overlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overlay")
            .field("fetch", &self.fetch.as_ref().map(|fetch| fetch.plugin()))
            .finish_non_exhaustive()
    }
}
