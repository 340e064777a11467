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

/// What stands in the place of a header.
const REMOVED: &str = "[key removed]";

/// A model as handlers read it: its headers may hold keys, whatever they are called.
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

/// What handlers read of a request that is being made.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RequestInput<'a> {
    /// Session.
    #[serde(rename = "sessionID")]
    pub session_id: &'a SessionId,
    /// Agent.
    pub agent: &'a str,
    /// Model.
    #[serde(serialize_with = "without_headers")]
    pub model: &'a ModelInfo,
    /// Its provider, without secrets.
    pub provider: &'a ProviderInfo,
    /// The user's message.
    pub message: &'a MessageInfo,
}
