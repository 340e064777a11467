//! Requests of a plugin's SDK client, and their responses.

use serde::{Deserialize, Serialize};

/// A request of the SDK client, or of `fetch` to the host's own origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SdkRequest {
    /// The plugin, if known. Plugins that share a process can claim each other's names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// HTTP method.
    pub method: String,
    /// Path with query.
    pub path: String,
    /// Headers.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Body as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// The answer to a [`SdkRequest`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SdkResponse {
    /// HTTP status.
    pub status: u16,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// Body as text; empty if it is streamed.
    pub body: String,
    /// The body follows in [`crate::rpc::host::SDK_CHUNK`], until its end or until it is cancelled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stream: bool,
}

/// A piece of a streamed answer, or its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SdkChunk {
    /// Id of the `sdk.request`.
    pub request: u64,
    /// Text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Nothing follows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub end: bool,
    /// Why it ended prematurely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl SdkChunk {
    /// Creates the end of an incomplete response.
    #[must_use]
    pub fn broken(request: u64, error: String) -> Self {
        Self {
            request,
            data: None,
            end: true,
            error: Some(error),
        }
    }
}

/// Allows more of a streamed response to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SdkCredit {
    /// Id of the `sdk.request`.
    pub request: u64,
    /// Bytes of text.
    pub bytes: u64,
}
