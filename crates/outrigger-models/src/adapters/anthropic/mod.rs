//! Anthropic messages.

mod body;
mod events;

pub(crate) use body::body;
pub(crate) use events::Decoder;

/// The default URL of the API.
pub(crate) const BASE_URL: &str = "https://api.anthropic.com/v1";
/// Version of the API.
pub(crate) const VERSION: &str = "2023-06-01";
/// The version in the body for Google Vertex.
const VERTEX_VERSION: &str = "vertex-2023-10-16";
/// Lets the model think between tool calls; models that do not know it ignore it.
pub(crate) const BETA: &str = "interleaved-thinking-2025-05-14";

/// Adapts a body for Google Vertex, where the URL names the model.
pub(crate) fn for_vertex(body: &mut outrigger_protocol::Object) {
    body.shift_remove("model");
    body.insert("anthropic_version".into(), VERTEX_VERSION.into());
}
