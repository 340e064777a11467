//! OpenAI-compatible chat completions, the protocol of most services and local servers.

mod body;
mod events;

pub(crate) use body::{body, choice};
pub(crate) use events::Decoder;

/// A service's deviations from the common form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Dialect {
    /// `@ai-sdk/openai-compatible` and everything like it.
    Compatible,
    /// OpenAI itself: reasoning models accept `max_completion_tokens` and no sampling parameters.
    OpenAi,
    /// OpenRouter: reasoning is sent back as `reasoning` and `reasoning_details`.
    OpenRouter,
    /// Services that refuse unknown keys: no `stream_options`, no reasoning sent back.
    Strict,
    /// Services that accept `stream_options` but no reasoning sent back (Groq, xAI, Cerebras …).
    NoReasoningBack,
}

/// Returns the adapter of an npm package, and the package's built-in base URL.
pub(crate) fn dialect(npm: &str) -> Option<(Dialect, Option<&'static str>)> {
    Some(match npm {
        "@ai-sdk/openai-compatible" => (Dialect::Compatible, None),
        "@openrouter/ai-sdk-provider" => {
            (Dialect::OpenRouter, Some("https://openrouter.ai/api/v1"))
        }
        "@ai-sdk/deepseek" => (Dialect::Compatible, Some("https://api.deepseek.com")),
        "@ai-sdk/groq" => (
            Dialect::NoReasoningBack,
            Some("https://api.groq.com/openai/v1"),
        ),
        "@ai-sdk/xai" => (Dialect::NoReasoningBack, Some("https://api.x.ai/v1")),
        "@ai-sdk/mistral" => (Dialect::Strict, Some("https://api.mistral.ai/v1")),
        "@ai-sdk/togetherai" => (Dialect::Compatible, Some("https://api.together.xyz/v1")),
        "@ai-sdk/cerebras" => (Dialect::NoReasoningBack, Some("https://api.cerebras.ai/v1")),
        "@ai-sdk/perplexity" => (Dialect::Strict, Some("https://api.perplexity.ai")),
        "@ai-sdk/deepinfra" => (
            Dialect::Compatible,
            Some("https://api.deepinfra.com/v1/openai"),
        ),
        _ => return None,
    })
}
