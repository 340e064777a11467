//! A model that can be called.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::stream::{StreamExt, iter, once};
use http::{HeaderMap, HeaderName, HeaderValue};
use outrigger_protocol::Object;
use outrigger_protocol::model::{ChatMessage, Content, ModelInfo, ModelRequest, ProviderInfo};
use serde_json::Value;

use crate::adapters::body::Body;
use crate::adapters::openai;
use crate::adapters::openai::Dialect;
use crate::adapters::plugin;
use crate::adapters::wire::{MakeDecoder, Target};
use crate::adapters::{anthropic, bedrock, gemini, responses};
use crate::cassette::{Player, Recorder};
use crate::cloud::Cloud;
use crate::error::ModelError;
use crate::provider::{Adapter, Provider, string_pairs};
use crate::transform;
use crate::transport::answer::Way;
use crate::transport::client::{Http, USER_AGENT};
use crate::transport::retry::{Deadlines, RetryPolicy};
use crate::transport::stream::{ModelStream, Prepared, StreamItem, open};

/// Options of one request.
#[derive(Clone, Debug, Default)]
pub struct StreamOptions {
    /// Session; goes into `x-session-affinity` and `x-session-id`.
    pub session_id: String,
    /// Parent of a subagent's session; goes into `x-parent-session-id`.
    pub parent_session_id: Option<String>,
    /// Working directory: `{DIR}` of cassettes.
    pub directory: PathBuf,
    /// Deadlines instead of those from the provider's options.
    pub deadlines: Option<Deadlines>,
    /// Retries instead of the default ones.
    pub retry: Option<RetryPolicy>,
}

/// A model, its provider, and everything needed to call it.
#[derive(Clone)]
pub struct Resolved {
    /// The model, in the form for hooks.
    pub model: ModelInfo,
    /// The requested named set of options.
    pub variant: Option<String>,
    provider: Arc<Provider>,
    http: Arc<Http>,
    recorder: Option<Arc<Recorder>>,
}

// The provider's options and the model's headers may contain keys.
impl std::fmt::Debug for Resolved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resolved")
            .field("provider", &self.provider.id)
            .field("model", &self.model.id)
            .field("variant", &self.variant)
            .finish_non_exhaustive()
    }
}

impl Resolved {
    pub(crate) fn new(
        model: ModelInfo,
        variant: Option<String>,
        provider: Arc<Provider>,
        http: Arc<Http>,
        recorder: Option<Arc<Recorder>>,
    ) -> Self {
        Self {
            model,
            variant,
            provider,
            http,
            recorder,
        }
    }

    /// Returns the provider in the form for hooks: with `options.apiKey` as configured, as in OpenCode, or with keys removed.
    #[must_use]
    pub fn provider_for_hooks(&self, redact: bool) -> Arc<ProviderInfo> {
        self.provider.view(redact)
    }

    /// Returns the model in the form for plugins: with keys and headers removed.
    #[must_use]
    pub fn model_for_hooks(&self) -> ModelInfo {
        self.provider.without_secrets(&self.model)
    }

    /// Returns the initial value of `chat.params`: the defaults for such a model, options of the model, and those of the
    /// requested variant, with later ones overriding. `small` is for titles and the like: no reasoning, no variant.
    #[must_use]
    pub fn default_options(&self, session: &str, small: bool) -> Object {
        let usual = transform::options(&self.model, &self.provider.options, session, small);
        let mut out = crate::provider::merged(usual, self.model.options.clone());
        if small {
            return out;
        }
        let variant = self
            .variant
            .as_ref()
            .and_then(|v| self.model.variants.get(v));
        if let Some(variant) = variant.and_then(Value::as_object) {
            out = crate::provider::merged(out, variant.clone());
        }
        out
    }

    /// Returns options of a request in the form for plugins, with likely secrets removed. [`crate::put_back`] reverts that.
    #[must_use]
    pub fn options_for_hooks(&self, options: &Object) -> Object {
        self.provider.options_without_secrets(options)
    }

    /// Sends the request when the stream is first polled. Retries happen inside, until the first content has arrived. Dropping
    /// the stream cancels the request.
    #[must_use]
    pub fn stream(&self, request: &ModelRequest, options: &StreamOptions) -> ModelStream {
        let stream = match self.start(request, options) {
            Ok(stream) => stream,
            Err(error) => return Box::pin(once(async { Err(error) })),
        };
        match &self.recorder {
            None => stream,
            Some(recorder) => recorder.wrap(
                stream,
                request,
                &format!("{}/{}", self.provider.id, self.model.id),
                &options.directory,
                self.provider.secrets.clone(),
            ),
        }
    }

    fn start(
        &self,
        request: &ModelRequest,
        options: &StreamOptions,
    ) -> Result<ModelStream, ModelError> {
        let adapter =
            self.provider
                .adapter(&self.model)
                .ok_or_else(|| ModelError::Unsupported {
                    provider: self.provider.id.clone(),
                    npm: self.model.api.npm.clone(),
                })?;
        let Some((path, mut body, decoder)) = self.call(adapter, request) else {
            return self.replay(request, options);
        };
        let url = match adapter {
            Adapter::Plugin => format!("plugin:{}/{path}", self.provider.id),
            _ => self.provider.address(adapter, &self.model, &path)?,
        };
        if let (Ok(url), false) = (url.parse(), self.provider.secrets.is_empty()) {
            outrigger_net::warn_in_the_clear(&format!("provider:{}", self.provider.id), &url);
        }
        let cloud = self.provider.cloud(&self.model);
        if adapter == Adapter::Anthropic && cloud == Some(Cloud::Vertex) {
            anthropic::for_vertex(body.fields());
        }
        let prepared = Prepared {
            target: Target {
                provider: self.provider.id.clone(),
                model: self.model.api.id.clone(),
                url,
                key_source: self.provider.key_source(),
                secrets: self.provider.secrets.clone(),
            },
            headers: self.headers(adapter, request, options)?,
            body: body.into_bytes(),
            decoder,
            deadlines: options.deadlines.unwrap_or(self.provider.deadlines),
            policy: options.retry.unwrap_or_default(),
            way: match &self.provider.fetch {
                Some(fetch) => Way::Plugin(Arc::clone(fetch)),
                None => Way::Http(
                    Arc::clone(&self.http),
                    self.provider.access.authority.clone(),
                ),
            },
        };
        Ok(open(prepared))
    }

    /// Returns the path, the body, and the decoder of the adapter. `None` for a cassette, which sends nothing.
    fn call(
        &self,
        adapter: Adapter,
        request: &ModelRequest,
    ) -> Option<(String, Body, MakeDecoder)> {
        let model = &self.model;
        let call: (String, Body, MakeDecoder) = match adapter {
            Adapter::Cassette => return None,
            Adapter::OpenAi(dialect) => (
                "chat/completions".to_owned(),
                openai::body(dialect, model, request),
                || Box::<openai::Decoder>::default(),
            ),
            Adapter::Anthropic => (
                "messages".to_owned(),
                anthropic::body(model, request),
                || Box::<anthropic::Decoder>::default(),
            ),
            Adapter::Responses => (
                "responses".to_owned(),
                if self.provider.id == "openai" && self.provider.is_login {
                    responses::body(model, &responses::with_instructions(request))
                } else {
                    responses::body(model, request)
                },
                || Box::<responses::Decoder>::default(),
            ),
            // The URL names the model.
            Adapter::Bedrock => (String::new(), bedrock::body(model, request).into(), || {
                Box::<bedrock::Decoder>::default()
            }),
            Adapter::Plugin => (
                model.api.id.clone(),
                self.asked_of_plugin(request).into(),
                || Box::<plugin::Decoder>::default(),
            ),
            Adapter::Gemini => (
                gemini::path(&model.api.id),
                gemini::body(model, request),
                || Box::<gemini::Decoder>::default(),
            ),
        };
        Some(call)
    }

    // Later ones override: ours, the provider's, the model's, those of the request (hooks).
    fn headers(
        &self,
        adapter: Adapter,
        request: &ModelRequest,
        options: &StreamOptions,
    ) -> Result<HeaderMap, ModelError> {
        let mut out = Headers {
            provider: &self.provider.id,
            map: HeaderMap::new(),
        };
        out.set("content-type", "application/json")?;
        out.set("user-agent", USER_AGENT)?;
        out.set("x-session-affinity", &options.session_id)?;
        out.set("x-session-id", &options.session_id)?;
        if let Some(parent) = &options.parent_session_id {
            out.set("x-parent-session-id", parent)?;
        }
        self.put_key(adapter, &mut out)?;
        if adapter == Adapter::OpenAi(Dialect::OpenRouter) {
            out.set("x-title", "outrigger")?;
        }
        if self.provider.is_copilot() {
            // The initiator: a request after a tool result does not count as the user's.
            let last = request
                .messages
                .iter()
                .next_back()
                .map(|message| &**message);
            let is_users = matches!(last, Some(ChatMessage::User { .. }))
                && options.parent_session_id.is_none();
            out.set("x-initiator", if is_users { "user" } else { "agent" })?;
            out.set("openai-intent", "conversation-edits")?;
            if request.messages.iter().any(|message| has_image(message)) {
                out.set("copilot-vision-request", "true")?;
            }
        }
        if self.provider.id == "openai" && self.provider.login.is_some() {
            out.set("originator", "outrigger")?;
            out.set("session-id", &options.session_id)?;
        }
        for (name, value) in self
            .provider
            .headers
            .iter()
            .chain(&string_pairs(Some(&self.model.headers)))
            .chain(&request.headers)
        {
            out.set(name, value)?;
        }
        Ok(out.map)
    }

    /// Adds the key in the service's header.
    fn put_key(&self, adapter: Adapter, out: &mut Headers<'_>) -> Result<(), ModelError> {
        // A plugin that sends the request itself may leave the key empty, and gets what OpenCode's packages send then.
        let empty = self.provider.options.get("apiKey").and_then(Value::as_str);
        let key = self
            .provider
            .key
            .as_ref()
            .map(|k| k.secret.expose())
            .or(empty.filter(|_| self.provider.fetch.is_some()));
        match (adapter, key) {
            (Adapter::Anthropic, key) => {
                out.set("anthropic-version", anthropic::VERSION)?;
                out.set("anthropic-beta", anthropic::BETA)?;
                if let Some(key) = key {
                    out.set("x-api-key", key)?;
                }
            }
            (Adapter::OpenAi(_) | Adapter::Responses, Some(key))
                if self.model.api.npm == "@ai-sdk/azure" =>
            {
                out.set("api-key", key)?
            }
            (Adapter::OpenAi(_) | Adapter::Responses | Adapter::Bedrock, Some(key)) => {
                out.set("authorization", &format!("Bearer {key}"))?
            }
            (Adapter::Gemini, Some(key)) => out.set("x-goog-api-key", key)?,
            // Only for the plugin that implements this provider.
            (Adapter::Plugin, Some(key)) => out.set("x-api-key", key)?,
            (
                Adapter::OpenAi(_)
                | Adapter::Responses
                | Adapter::Gemini
                | Adapter::Bedrock
                | Adapter::Plugin
                | Adapter::Cassette,
                _,
            ) => {}
        }
        Ok(())
    }

    fn asked_of_plugin(&self, request: &ModelRequest) -> Object {
        let options = self.provider.options_for_its_plugin();
        plugin::body(&self.model, options, request)
    }

    fn replay(
        &self,
        request: &ModelRequest,
        options: &StreamOptions,
    ) -> Result<ModelStream, ModelError> {
        let player = self
            .provider
            .player
            .get_or_init(|| {
                let file = self
                    .provider
                    .options
                    .get("file")
                    .and_then(Value::as_str)
                    .ok_or_else(|| ModelError::Config {
                        provider: self.provider.id.clone(),
                        message: "`options.file` (the cassette) is missing".into(),
                    })?;
                Player::load(options.directory.join(file)).map(Arc::new)
            })
            .as_ref()
            .map_err(Clone::clone)?;
        let events = player.answer(request, &options.directory)?;
        let delay = self
            .provider
            .options
            .get("delayMs")
            .and_then(Value::as_u64)
            .unwrap_or(0);
        let items = iter(events.into_iter().map(|e| Ok(StreamItem::Event(e))));
        if delay == 0 {
            return Ok(Box::pin(items));
        }
        Ok(Box::pin(items.then(move |item| async move {
            tokio::time::sleep(std::time::Duration::from_millis(delay)).await;
            item
        })))
    }
}

fn has_image(message: &ChatMessage) -> bool {
    let (ChatMessage::User { content } | ChatMessage::Assistant { content }) = message else {
        return false;
    };
    let is_image =
        |part: &Content| matches!(part, Content::File { mime, .. } if mime.starts_with("image/"));
    content.iter().any(is_image)
}

struct Headers<'a> {
    provider: &'a str,
    map: HeaderMap,
}

impl Headers<'_> {
    fn set(&mut self, name: &str, value: &str) -> Result<(), ModelError> {
        // The value is not shown: it may be a key.
        let bad = || ModelError::Config {
            provider: self.provider.to_owned(),
            message: format!(
                "header `{name}` cannot be sent: its name or value has characters that are not allowed"
            ),
        };
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
        value.set_sensitive(crate::secret::is_secret_name(name));
        self.map.insert(key, value);
        Ok(())
    }
}
