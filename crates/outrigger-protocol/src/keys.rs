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

/// An address without the login and the keys in it, or a flag without its key (`--api-key=…`), with `removed` in their places; `None` where
/// it has none. `is_key`: whether a parameter of this name is one.
#[must_use]
pub fn without_login(text: &str, is_key: impl Fn(&str) -> bool, removed: &str) -> Option<String> {
    if let Some((name, value)) = text.split_once('=').filter(|_| text.starts_with("--")) {
        return (!value.is_empty() && is_key(name)).then(|| format!("{name}={removed}"));
    }
    let (scheme, rest) = text.split_once("://")?;
    if rest.contains(char::is_whitespace) {
        return None;
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let mut shown = match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{removed}@{host}"),
        None => format!("{scheme}://{authority}"),
    };
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    shown.push_str(path);
    for (at, pair) in query.split('&').enumerate().filter(|_| rest.contains('?')) {
        shown.push(if at == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((name, _)) if name.eq_ignore_ascii_case("key") || is_key(name) => {
                shown.push_str(&format!("{name}={removed}"));
            }
            _ => shown.push_str(pair),
        }
    }
    (shown != text).then_some(shown)
}
