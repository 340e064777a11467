//! Hook points, events and providers of plugins on the channel (B8).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{ModelInfo, ModelRequest};
use crate::plugin::rpc::handler::HandlerRef;

/// A plugin reaches a point that it declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointCall {
    /// Name of the point.
    pub point: String,
    /// What handlers are given.
    #[serde(default)]
    pub input: Value,
    /// What handlers may change.
    #[serde(default)]
    pub output: Value,
    /// The chain that it is reached from ([`crate::plugin::rpc::HookRun::chain`]), if the plugin is in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<u64>,
    /// The depth of the event whose hook reaches it ([`crate::conversation::event::CustomEvent::depth`]).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
}

fn is_zero(depth: &u32) -> bool {
    *depth == 0
}

/// The answer to a [`PointCall`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointCalled {
    /// As the last handler left it.
    pub output: Value,
}

/// A plugin tells an event that it declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventEmit {
    /// Its `type`.
    pub event: String,
    /// Its payload.
    #[serde(default)]
    pub properties: Value,
    /// As [`PointCall::chain`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<u64>,
    /// As [`PointCall::depth`]; to the host's handler, the depth of this event.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
}

/// A provider whose `stream` a plugin brings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderDecl {
    /// Its name in `provider/model`.
    pub id: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Variables that may hold its key. Without any it wants none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
}

/// Asks a plugin's provider for an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderStream {
    /// Whose.
    pub handler: HandlerRef,
    /// Provider.
    pub provider: String,
    /// The key of the provider, if there is one. It goes to the plugin that speaks for it and to nobody else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What is asked.
    pub ask: ProviderAsked,
}

/// A request in no provider's format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderAsked {
    /// Model, with limits, prices and what it can do.
    pub model: ModelInfo,
    /// Options of the provider from the configuration, without keys.
    pub options: crate::Object,
    /// Messages, tools, parameters, headers of hooks.
    #[serde(flatten)]
    pub request: ModelRequest,
}

/// What a plugin's provider streams. Texts of one kind that follow each other are one block.
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
    /// The model has begun to write a tool call; may be left out.
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
        /// Arguments; a text is what the model wrote, and may be no JSON.
        #[serde(default)]
        input: Value,
    },
    /// The answer has ended. Nothing follows.
    Finish {
        /// `stop`, `tool-calls`, `length`, `content-filter`, `error`, `other`; without it, the blocks decide.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Tokens, which the bill is made of.
        #[serde(default)]
        usage: ProviderUsage,
    },
    /// It failed on the way. Nothing follows.
    Error {
        /// Why.
        message: String,
        /// HTTP status that it stands for: what kind of failure it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// Code of the service.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
}

/// Tokens; what is left out is 0.
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
