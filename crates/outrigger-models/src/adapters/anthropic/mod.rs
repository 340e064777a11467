//! Anthropic messages.

mod body;
mod events;

pub(crate) use body::body;
pub(crate) use events::Decoder;

/// Where the API is when the configuration does not say.
pub(crate) const BASE_URL: &str = "https://api.anthropic.com/v1";
/// Version of the API.
pub(crate) const VERSION: &str = "2023-06-01";
/// The same at Google Vertex, in the body.
const VERTEX_VERSION: &str = "vertex-2023-10-16";
/// Lets the model think between tool calls; models that do not know it ignore it.
pub(crate) const BETA: &str = "interleaved-thinking-2025-05-14";

/// A body as Google Vertex wants it, where the address names the model.
pub(crate) fn for_vertex(body: &mut outrigger_protocol::Object) {
    body.shift_remove("model");
    body.insert("anthropic_version".into(), VERTEX_VERSION.into());
}
