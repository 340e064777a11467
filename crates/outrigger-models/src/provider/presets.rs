//! Providers that need only a key.

/// A built-in provider.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Preset {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    /// Its npm package in OpenCode; determines the adapter and the base URL.
    pub(crate) npm: &'static str,
    /// Base URL, if the package has none built in.
    pub(crate) api: Option<&'static str>,
    /// Environment variables that may contain the key, the preferred one first.
    pub(crate) env: &'static [&'static str],
}

/// GitHub Copilot, which uses a login instead of a key.
pub(crate) const COPILOT: &str = "github-copilot";

const COMPATIBLE: &str = "@ai-sdk/openai-compatible";

const fn row(
    id: &'static str,
    name: &'static str,
    npm: &'static str,
    api: Option<&'static str>,
    env: &'static [&'static str],
) -> Preset {
    Preset {
        id,
        name,
        npm,
        api,
        env,
    }
}

/// In the order of choosing a default. Names, packages and variables are those of models.dev.
pub(crate) const PRESETS: &[Preset] = &[
    row(
        "anthropic",
        "Anthropic",
        "@ai-sdk/anthropic",
        None,
        &["ANTHROPIC_API_KEY"],
    ),
    row(
        "openai",
        "OpenAI",
        "@ai-sdk/openai",
        None,
        &["OPENAI_API_KEY"],
    ),
    row(
        "google",
        "Google",
        "@ai-sdk/google",
        None,
        &[
            "GOOGLE_API_KEY",
            "GOOGLE_GENERATIVE_AI_API_KEY",
            "GEMINI_API_KEY",
        ],
    ),
    row(
        "openrouter",
        "OpenRouter",
        "@openrouter/ai-sdk-provider",
        None,
        &["OPENROUTER_API_KEY"],
    ),
    row(
        "deepseek",
        "DeepSeek",
        COMPATIBLE,
        Some("https://api.deepseek.com"),
        &["DEEPSEEK_API_KEY"],
    ),
    row("xai", "xAI", "@ai-sdk/xai", None, &["XAI_API_KEY"]),
    row("groq", "Groq", "@ai-sdk/groq", None, &["GROQ_API_KEY"]),
    row(
        "mistral",
        "Mistral",
        "@ai-sdk/mistral",
        None,
        &["MISTRAL_API_KEY"],
    ),
    row(
        "moonshotai",
        "Moonshot AI",
        COMPATIBLE,
        Some("https://api.moonshot.ai/v1"),
        &["MOONSHOT_API_KEY"],
    ),
    row(
        "zai",
        "Z.AI",
        COMPATIBLE,
        Some("https://api.z.ai/api/paas/v4"),
        &["ZHIPU_API_KEY"],
    ),
    row("azure", "Azure", "@ai-sdk/azure", None, &["AZURE_API_KEY"]),
    row(
        "amazon-bedrock",
        "Amazon Bedrock",
        "@ai-sdk/amazon-bedrock",
        None,
        &["AWS_BEARER_TOKEN_BEDROCK"],
    ),
    row(
        "google-vertex",
        "Vertex",
        "@ai-sdk/google-vertex",
        None,
        &[],
    ),
    row(
        "google-vertex-anthropic",
        "Vertex (Anthropic)",
        "@ai-sdk/google-vertex/anthropic",
        None,
        &[],
    ),
    row(
        COPILOT,
        "GitHub Copilot",
        COMPATIBLE,
        Some("https://api.githubcopilot.com"),
        &[],
    ),
];

/// Returns the built-in provider of this name.
pub(crate) fn preset(id: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|p| p.id == id)
}
