//! RPC messages for hook points, events and providers of plugins (B8).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{ModelInfo, ModelRequest};
use crate::plugin::rpc::handler::HandlerRef;

/// A plugin triggers a point that it declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointCall {
    /// Name of the point.
    pub point: String,
    /// The input of handlers.
    #[serde(default)]
    pub input: Value,
    /// What handlers may change.
    #[serde(default)]
    pub output: Value,
    /// The chain in which it is triggered ([`crate::plugin::rpc::HookRun::chain`]), if the plugin is in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<u64>,
    /// The depth of the event whose hook triggers it ([`crate::conversation::event::CustomEvent::depth`]).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
}

fn is_zero(depth: &u32) -> bool {
    *depth == 0
}

/// The answer to a [`PointCall`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointCalled {
    /// The output after the last handler.
    pub output: Value,
}

/// A plugin publishes an event that it declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventEmit {
    /// Its `type`.
    pub event: String,
    /// Its payload.
    #[serde(default)]
    pub properties: Value,
    /// Like [`PointCall::chain`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<u64>,
    /// Like [`PointCall::depth`]; for the host's handler, the depth of this event.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
}

/// A provider whose `stream` a plugin implements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderDecl {
    /// Its name in `provider/model`.
    pub id: String,
    /// Its display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Variables that may hold its key. Without any it wants none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
}

/// Requests an answer from a plugin's provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderStream {
    /// The handler.
    pub handler: HandlerRef,
    /// Provider.
    pub provider: String,
    /// The key of the provider, if there is one. Only the plugin that implements the provider gets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The request.
    pub ask: ProviderAsked,
}

/// A request independent of any provider's format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderAsked {
    /// The model, with limits, prices and capabilities.
    pub model: ModelInfo,
    /// Options of the provider from the configuration, without keys.
    pub options: crate::Object,
    /// Messages, tools, parameters, and headers from hooks.
    #[serde(flatten)]
    pub request: ModelRequest,
}

/// A piece of a plugin provider's response stream. Consecutive texts of one kind form one block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ProviderPiece {
    /// More text.
    Text {
        /// Piece.
        text: String,
    },
    /// More reasoning.
    Reasoning {
        /// Piece.
        text: String,
    },
    /// The model has started to write a tool call; optional.
    ToolStart {
        /// Identifier.
        #[serde(default)]
        id: String,
        /// Tool.
        name: String,
    },
    /// A tool call is complete.
    ToolCall {
        /// Identifier.
        #[serde(default)]
        id: String,
        /// Tool.
        name: String,
        /// Arguments; a string is what the model wrote, and may not be JSON.
        #[serde(default)]
        input: Value,
    },
    /// The answer has ended. This is the last piece.
    Finish {
        /// `stop`, `tool-calls`, `length`, `content-filter`, `error`, `other`; default: derived from the
        /// blocks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Token usage, the basis of the cost.
        #[serde(default)]
        usage: ProviderUsage,
    },
    /// It failed. This is the last piece.
    Error {
        /// The reason.
        message: String,
        /// The equivalent HTTP status, which classifies the failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// Code of the service.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
}

/// Token usage; omitted fields are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderUsage {
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
