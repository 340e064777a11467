//! How the keys of the usual services look.

/// How they begin.
pub const KEY_PREFIXES: &[&str] = &[
    "sk-",
    "sk_",
    "gsk_",
    "xai-",
    "AIza",
    "csk-",
    "nvapi-",
    "hf_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "npm_",
    "eyJ",
];

/// Shorter words are none.
const MIN_LENGTH: usize = 12;

/// Whether a word looks like a key: it begins as one and is long enough.
#[must_use]
pub fn looks_like_key(word: &str) -> bool {
    word.len() >= MIN_LENGTH && KEY_PREFIXES.iter().any(|it| word.starts_with(it))
}
