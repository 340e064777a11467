//! OpenAI's Responses API, the protocol of `@ai-sdk/openai` in OpenCode, for every provider that
//! names it.

mod body;
mod events;

pub(crate) use body::{body, with_instructions};
pub(crate) use events::Decoder;

/// The base URL built into the package.
pub(crate) const BASE_URL: &str = "https://api.openai.com/v1";
