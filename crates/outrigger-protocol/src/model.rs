//! Models, providers, requests and response streams.

mod messages;
mod shared;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Object;

pub use messages::{Block, Messages, Stretch};
pub use shared::SharedMessage;

/// Options of a provider, besides URLs, that determine where models in a cloud are called and with whose rights: who sets one controls
/// who gets the prompts, and the keys.
pub const PLACE_OPTIONS: [&str; 4] = ["endpoint", "profile", "project", "resourceName"];

/// A model, in the form for hooks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// Name, as configured.
    pub id: String,
    /// Provider.
    #[serde(rename = "providerID")]
    pub provider_id: String,
    /// How to call it.
    pub api: ModelApi,
    /// Display name.
    pub name: String,
    /// Family (`claude-sonnet`, `gpt-5` …); empty when unknown.
    pub family: String,
    /// Its capabilities.
    pub capabilities: Capabilities,
    /// US dollars for a million tokens.
    pub cost: Cost,
    /// Tokens.
    pub limit: Limit,
    /// `active`, `beta`, `alpha`, `deprecated`.
    pub status: String,
    /// Options for the provider.
    pub options: Object,
    /// Request headers.
    pub headers: Object,
    /// `YYYY-MM-DD` or empty.
    pub release_date: String,
    /// Named sets of options.
    pub variants: Object,
}

/// How to call a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelApi {
    /// The name sent in requests.
    pub id: String,
    /// Base URL.
    pub url: String,
    /// The npm package that OpenCode would use; mapped to an adapter.
    pub npm: String,
}

/// The capabilities of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Supports a temperature.
    pub temperature: bool,
    /// Supports reasoning.
    pub reasoning: bool,
    /// Accepts files.
    pub attachment: bool,
    /// Supports tool calls.
    pub toolcall: bool,
    /// Input.
    pub input: Modalities,
    /// Output.
    pub output: Modalities,
    /// Whether reasoning must be returned between tool calls: false, true or `{field}`.
    pub interleaved: Value,
}

/// Kinds of content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each name says it")]
pub struct Modalities {
    pub text: bool,
    pub audio: bool,
    pub image: bool,
    pub video: bool,
    pub pdf: bool,
}

/// Prices in US dollars for a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Sent.
    pub input: f64,
    /// Received.
    pub output: f64,
    /// Prompt cache.
    pub cache: CacheCost,
}

/// Prices of the prompt cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CacheCost {
    /// Read.
    pub read: f64,
    /// Written.
    pub write: f64,
}

/// Limits in tokens; 0 when unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// The whole context.
    pub context: u64,
    /// A request; absent: the context less the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// One answer.
    pub output: u64,
}

/// A provider, in the run-time form for hooks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProviderInfo {
    /// Name, as configured.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Its source: `config`, `env`, `api`, `custom`.
    pub source: String,
    /// Environment variables that may hold its key.
    pub env: Vec<String>,
    /// Options (`baseURL`, `apiKey`, `headers`, timeouts …).
    pub options: Object,
    /// Its models by name.
    pub models: serde_json::Map<String, Value>,
}

/// A message to a model, independent of the provider's format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum ChatMessage {
    /// Instructions.
    System {
        /// Text.
        content: String,
    },
    /// A message of the user.
    User {
        /// Text and files.
        content: Vec<Content>,
    },
    /// A message of the model.
    Assistant {
        /// Text, reasoning and tool calls in order.
        content: Vec<Content>,
    },
    /// The result of a tool.
    Tool {
        /// The call.
        call_id: String,
        /// The tool.
        tool: String,
        /// Text.
        content: String,
        /// The call failed.
        is_error: bool,
    },
}

/// The author, besides the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// Reasoning, returned to providers that want it.
    Reasoning {
        /// The text.
        text: String,
        /// The provider's signature and the like.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
    },
    /// A file.
    File {
        /// Media type.
        mime: String,
        /// `data:` or `http(s):`.
        url: String,
        /// Name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filename: Option<String>,
    },
    /// A tool call of the model.
    ToolCall {
        /// Identifier.
        call_id: String,
        /// Tool.
        tool: String,
        /// Arguments.
        input: Value,
        /// Data that the provider wants back with it (a signature).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
    },
}

/// A tool as offered to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolOffer {
    /// Name.
    pub name: String,
    /// For the model.
    pub description: String,
    /// JSON Schema.
    pub parameters: Value,
}

/// Whether a model must call a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// It must call one of them.
    Required,
}

/// A request to a model, after the hooks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelRequest {
    /// Messages, the system's first.
    pub messages: Messages,
    /// Tools offered.
    pub tools: Vec<ToolOffer>,
    /// Whether one of them must be called.
    #[serde(default)]
    pub tool_choice: ToolChoice,
    /// `temperature`, `topP`, `topK`, `maxOutputTokens`, absent where not set.
    pub params: ModelParams,
    /// Extra request headers.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
}

/// Parameters of a request; `options` is added to the body unchanged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelParams {
    /// Sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Sampling among the k likeliest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<f64>,
    /// Limit of tokens in the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// Provider options.
    #[serde(default)]
    pub options: Object,
}

/// Prices of a model, in US dollars per million tokens. Stored as `[input, output, cache read, cache write]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f64; 4]", into = "[f64; 4]")]
pub struct Prices {
    /// Tokens that are sent and not in the cache.
    pub input: f64,
    /// Tokens that are received, reasoning included.
    pub output: f64,
    /// Tokens that are read from the cache.
    pub cache_read: f64,
    /// Tokens that are written to the cache.
    pub cache_write: f64,
}

impl From<[f64; 4]> for Prices {
    fn from([input, output, cache_read, cache_write]: [f64; 4]) -> Self {
        Self {
            input,
            output,
            cache_read,
            cache_write,
        }
    }
}

impl From<Cost> for Prices {
    fn from(cost: Cost) -> Self {
        Self {
            input: cost.input,
            output: cost.output,
            cache_read: cost.cache.read,
            cache_write: cost.cache.write,
        }
    }
}

impl From<Prices> for [f64; 4] {
    fn from(prices: Prices) -> Self {
        [
            prices.input,
            prices.output,
            prices.cache_read,
            prices.cache_write,
        ]
    }
}

/// Tokens counted by the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Sent, cache hits included.
    pub input: u64,
    /// Received, reasoning included.
    pub output: u64,
    /// Received as reasoning.
    pub reasoning: u64,
    /// Of `input`, read from the cache.
    pub cache_read: u64,
    /// Written to the cache.
    pub cache_write: u64,
}

/// An event of a model's response stream. Blocks are identified by `index`; a block's start comes before its deltas and its end after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StreamEvent {
    /// The response has started.
    Started,
    /// A text block starts.
    TextStart {
        /** Block. */
        index: u32,
    },
    /// More text.
    TextDelta {
        /** Block. */
        index: u32,
        /** Piece. */
        text: String,
    },
    /// The text block is complete.
    TextEnd {
        /** Block. */
        index: u32,
    },
    /// A reasoning block starts.
    ReasoningStart {
        /** Block. */
        index: u32,
    },
    /// More reasoning.
    ReasoningDelta {
        /** Block. */
        index: u32,
        /** Piece. */
        text: String,
    },
    /// The reasoning block is complete.
    ReasoningEnd {
        /** Block. */
        index: u32,
        /** Signature and the like. */
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
    },
    /// The model has started to write a tool call.
    ToolStart {
        /** Identifier as the model gave it; may be empty. */
        call_id: String,
        /** Tool. */
        tool: String,
    },
    /// The tool call is complete. `raw` is what the model wrote; it may not be JSON.
    ToolEnd {
        /** Identifier. */
        call_id: String,
        /** Tool. */
        tool: String,
        /** Arguments. */
        raw: String,
        /** What the provider wants back with it (a signature). */
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
    },
    /// The response has ended.
    Finished {
        /** `stop`, `tool-calls`, `length`, `content-filter`, `error`, `other`, `unknown`. */
        reason: String,
        /** Tokens. */
        usage: Usage,
    },
}
