//! Google's Gemini API, the protocol of `@ai-sdk/google` in OpenCode.

mod body;
mod events;
mod schema;

pub(crate) use body::body;
pub(crate) use events::Decoder;

/// The base URL built into the package.
pub(crate) const BASE_URL: &str = "https://generativelanguage.googleapis.com/v1beta";

/// Returns the path after the base URL.
pub(crate) fn path(model: &str) -> String {
    let model = if model.contains('/') {
        model.to_owned()
    } else {
        format!("models/{model}")
    };
    format!("{model}:streamGenerateContent?alt=sse")
}
