//! How the keys of the usual services look, and logins in addresses.

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

/// A text without the logins that addresses in it have: passwords before the host, keys among the parameters. `None` where there are none.
#[must_use]
pub fn without_logins(text: &str, stand_in: &str) -> Option<String> {
    const BEFORE_HOST: &str = "://";
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(BEFORE_HOST) {
        let (before, after) = rest.split_at(at + BEFORE_HOST.len());
        let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>');
        let (address, tail) = after.split_at(after.find(ends).unwrap_or(after.len()));
        out.push_str(before);
        push_address(&mut out, address, stand_in);
        rest = tail;
    }
    out.push_str(rest);
    (out != text).then_some(out)
}

/// A user name that is this long is a token.
const TOKEN_LENGTH: usize = 16;

fn push_address(out: &mut String, address: &str, stand_in: &str) {
    let (authority, rest) =
        address.split_at(address.find(['/', '?', '#']).unwrap_or(address.len()));
    match authority.rsplit_once('@') {
        Some((login, host)) => {
            match login.split_once(':') {
                Some((user, _)) => *out += &format!("{user}:{stand_in}@{host}"),
                None if login.len() >= TOKEN_LENGTH || looks_like_key(login) => {
                    *out += &format!("{stand_in}@{host}");
                }
                None => out.push_str(authority),
            };
        }
        None => out.push_str(authority),
    }
    let Some((path, query)) = rest.split_once('?') else {
        out.push_str(rest);
        return;
    };
    let (query, fragment) = query.split_at(query.find('#').unwrap_or(query.len()));
    let shown = query
        .split('&')
        .map(|parameter| match parameter.split_once('=') {
            Some((name, value)) if !value.is_empty() && is_secret_parameter(name) => {
                format!("{name}={stand_in}")
            }
            _ => parameter.to_owned(),
        });
    let shown: Vec<String> = shown.collect();
    *out += &format!("{path}?{}{fragment}", shown.join("&"));
}

fn is_secret_parameter(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace(['-', '_'], "");
    ["auth", "key", "pass", "pwd", "sig", "signature"].contains(&name.as_str())
        || [
            "apikey",
            "accesskey",
            "credential",
            "password",
            "secret",
            "token",
        ]
        .iter()
        .any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_of_addresses_are_found() {
        for (text, want) in [
            ("https://u:p@h/x?a=1", Some("https://u:-@h/x?a=1")),
            (
                "see https://h/?key=k&q=a#f and http://h?api_key=k",
                Some("see https://h/?key=-&q=a#f and http://h?api_key=-"),
            ),
            ("postgres://u:p@h:5/db", Some("postgres://u:-@h:5/db")),
            ("https://ghp_0123456789abcdef@h/r", Some("https://-@h/r")),
            ("ssh://git@h/r", None),
            ("https://h/a@b?monkey=1", None),
            ("no address: a@b?key=c", None),
        ] {
            assert_eq!(without_logins(text, "-").as_deref(), want, "{text}");
        }
    }
}
