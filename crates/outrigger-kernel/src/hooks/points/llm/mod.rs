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
use serde::{Serialize, Serializer};

/// Replaces the value of a header.
const REMOVED: &str = "[key removed]";

/// Serialises a model without its headers: they may hold keys under any name.
pub(crate) fn without_headers<S: Serializer>(
    model: &&ModelInfo,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if model.headers.is_empty() {
        return model.serialize(serializer);
    }
    let mut shown = (*model).clone();
    shown
        .headers
        .values_mut()
        .for_each(|it| *it = REMOVED.into());
    shown.serialize(serializer)
}

/// A request under construction, as handlers read it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RequestInput<'a> {
    /// Id of the session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
    /// Name of the agent.
    pub agent: &'a str,
    /// The model.
    #[serde(serialize_with = "without_headers")]
    pub model: &'a ModelInfo,
    /// Provider of the model, without secrets.
    pub provider: &'a ProviderInfo,
    /// The user's message.
    pub message: &'a MessageInfo,
}
