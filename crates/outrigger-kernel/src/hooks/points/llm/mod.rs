//! Points of `llm`.

pub mod after_response;
pub mod after_text;
pub mod before_headers;
pub mod before_messages;
pub mod before_params;
pub mod before_request;
pub mod before_system;
pub mod on_error;
pub mod tool_definition;

use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::MessageInfo;
use outrigger_protocol::model::{ModelInfo, ProviderInfo};
use serde::Serialize;

/// What handlers read of a request that is being made.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RequestInput<'a> {
    /// Session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
    /// Agent.
    pub agent: &'a str,
    /// Model.
    pub model: &'a ModelInfo,
    /// Its provider, without secrets.
    pub provider: &'a ProviderInfo,
    /// The user's message.
    pub message: &'a MessageInfo,
}
