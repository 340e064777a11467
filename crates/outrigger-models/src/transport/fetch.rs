//! A provider's requests sent by someone else: the `fetch` that a plugin's `auth.loader` answers with.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use outrigger_protocol::Object;
use outrigger_protocol::model::PLACE_OPTIONS;
use serde_json::Value;

use crate::provider::withheld::Speaker;

/// A request as the AI SDK's package would hand it to `fetch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchRequest {
    /// Method, `POST`.
    pub method: String,
    /// Whole address.
    pub url: String,
    /// Headers in order.
    pub headers: Vec<(String, String)>,
    /// Body, always text.
    pub body: String,
}

/// The head of an answer, and its body.
pub struct FetchResponse {
    /// HTTP status.
    pub status: u16,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// Pieces of the body. Dropping it cancels the request. After an error nothing comes.
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
    /// Whose code it is, for messages: the plugin's name.
    fn plugin(&self) -> &str;
}

/// Options of a provider that name files of this program's: the user's to say, and no plugin's.
pub const FILES: [&str; 2] = ["record", "file"];

const BASE_URL: &str = "baseURL";
const ENDPOINT: &str = "endpoint";

/// Whether options of a provider say where it is asked.
#[must_use]
pub fn names_place(options: &Object) -> bool {
    let mut names = PLACE_OPTIONS.iter().chain([&BASE_URL]);
    names.any(|it| options.contains_key(*it))
}

/// How an address is asked that a plugin named.
#[derive(Clone, PartialEq, Eq)]
pub enum Route {
    /// By this proxy, its login in the address.
    Proxy(String),
    /// Not at all, for this reason.
    Refused(String),
}

/// What a plugin adds to a provider.
#[derive(Clone, Default)]
pub struct Overlay {
    /// What its `auth.loader` answered, `fetch` apart; the configuration's options win over these, as in OpenCode.
    pub options: Option<Object>,
    /// How the `baseURL` in `options` is asked.
    pub options_route: Option<Route>,
    /// The `fetch` of that answer.
    pub fetch: Option<Arc<dyn ProviderFetch>>,
    /// The models that its `provider` hook answered, instead of the catalog's.
    pub models: Option<serde_json::Map<String, Value>>,
    /// How the addresses in `models` are asked.
    pub models_route: Option<Route>,
    /// It is a provider of the plugin's own, and `fetch` speaks its protocol (B8).
    pub own: Option<ContributedProvider>,
    /// The plugin that answers for the provider, or that named where its requests are sent.
    pub speaker: Option<Speaker>,
}

impl Overlay {
    /// The plugin that speaks for the provider, where the user's keys are not for it. A provider of a plugin of the user's own has
    /// keys that the user gave to the plugin.
    pub(crate) fn without_keys(&self) -> Option<&Speaker> {
        let speaker = self.speaker.as_ref()?;
        let is_users = self.own.is_some() && !speaker.of_project;
        (!speaker.has_keys && !is_users).then_some(speaker)
    }

    /// What the loader answered, but for what is no plugin's to say.
    pub(crate) fn loaded(&self) -> Object {
        let mut loaded = self.options.clone().unwrap_or_default();
        loaded.retain(|key, _| !FILES.contains(&key.as_str()));
        loaded
    }

    /// How the provider is asked, where the address is a plugin's. `configured` are the options of the configuration.
    pub(crate) fn route(&self, configured: &Object) -> Option<&Route> {
        let is_named = |options: &Object, key: &str| options.get(key).is_some_and(Value::is_string);
        let by_loader = |key: &str| {
            let loaded = self.options.as_ref();
            loaded.is_some_and(|it| is_named(it, key)) && !is_named(configured, key)
        };
        if self.fetch.is_some() {
            return None;
        }
        // An endpoint of Bedrock goes before an address, other names of places do not.
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

/// A provider that a plugin brings, with a protocol of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContributedProvider {
    /// Its name for people.
    pub name: Option<String>,
    /// Variables that may hold its key. Without any it wants none.
    pub env: Vec<String>,
    /// Those of them that the plugin may see: in no other its key is looked for.
    pub granted: Vec<String>,
}

// The options may hold keys.
impl fmt::Debug for Overlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overlay")
            .field("fetch", &self.fetch.as_ref().map(|fetch| fetch.plugin()))
            .finish_non_exhaustive()
    }
}
