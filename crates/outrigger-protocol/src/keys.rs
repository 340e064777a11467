//! Detection of secrets: the format of common API keys, the names of secrets, and credentials in URLs.

/// Known prefixes.
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

/// Minimum length of a key.
const MIN_LENGTH: usize = 12;

/// Returns whether a word looks like a key: it has a known prefix and is long enough.
#[must_use]
pub fn looks_like_key(word: &str) -> bool {
    word.len() >= MIN_LENGTH && KEY_PREFIXES.iter().any(|it| word.starts_with(it))
}

/// Parts of the names of secrets, in lower case and without `-` and `_`.
const NAMED: [&str; 15] = [
    "accesskey",
    "apikey",
    "authorization",
    "bearer",
    "connectionstring",
    "cookie",
    "credential",
    "jwt",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "signature",
    "token",
];
/// Last words of such names.
const LAST: [&str; 10] = [
    "auth", "cert", "cred", "creds", "key", "pass", "pat", "pwd", "sas", "sig",
];
/// Words before `key` in names that are not secret.
const OPEN_KEYS: [&str; 2] = ["cache", "public"];
/// Last words of option names whose values are never secrets.
const PLAIN: [&str; 44] = [
    "account",
    "api",
    "beta",
    "betas",
    "date",
    "deployment",
    "description",
    "dir",
    "domain",
    "effort",
    "email",
    "endpoint",
    "family",
    "file",
    "format",
    "host",
    "hostname",
    "id",
    "ids",
    "language",
    "level",
    "locale",
    "location",
    "mode",
    "model",
    "models",
    "name",
    "npm",
    "org",
    "organization",
    "path",
    "profile",
    "project",
    "prompt",
    "region",
    "resource",
    "text",
    "tier",
    "title",
    "type",
    "uri",
    "url",
    "version",
    "workspace",
];
/// Minimum length of a secret; shorter option values are choices.
const MIN_SECRET_LENGTH: usize = 8;

/// Returns whether the value of an option, a header, a flag or a variable with this name is likely a secret. Errs on the side of secrecy.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let words = words(name);
    let plain = words.concat();
    // `maxTokens` is a limit.
    if plain.ends_with("tokens") {
        return false;
    }
    let before = words.len().checked_sub(2).and_then(|at| words.get(at));
    let is_last = |last: &String| LAST.contains(&last.as_str());
    let is_open = before.is_some_and(|it| OPEN_KEYS.contains(&it.as_str()));
    names_secret_part(name) || words.last().is_some_and(is_last) && !is_open
}

/// Like [`is_secret_name`], by a part of the name alone, for keys that may be patterns and the like.
#[must_use]
pub fn names_secret_part(name: &str) -> bool {
    let plain = words(name).concat();
    !plain.ends_with("tokens") && NAMED.iter().any(|it| plain.contains(it))
}

/// Returns whether an option of a provider or a model is likely a secret: by its name or, if that is inconclusive, by its value. Choices
/// are words in lower case; ids, addresses and model names are recognised by their names.
#[must_use]
pub fn is_secret_option(name: &str, value: &str) -> bool {
    if is_secret_name(name) || looks_like_key(value) {
        return true;
    }
    let is_word = |c: char| c.is_ascii_lowercase() || matches!(c, '-' | '_' | '.' | ' ');
    let is_placed = value.contains("://") || value.starts_with(['/', '~', '.']);
    let words = words(name);
    let is_plain = words.last().is_some_and(|it| PLAIN.contains(&it.as_str()));
    let is_text = value.split_whitespace().nth(1).is_some();
    value.len() >= MIN_SECRET_LENGTH
        && !is_plain
        && !is_placed
        && !is_text
        && !value.chars().all(is_word)
}

/// Values that settings have in the place of a key that a local server does not check.
const NO_KEYS: [&str; 16] = [
    "anything",
    "changeme",
    "default",
    "disabled",
    "example",
    "ignored",
    "lm-studio",
    "localhost",
    "no-key",
    "no-key-required",
    "not-needed",
    "not-required",
    "ollama",
    "placeholder",
    "required",
    "unused",
];
/// Minimum length of a value that is a secret by its characters alone.
const MIN_RANDOM_LENGTH: usize = 20;

/// Returns whether a value of this name is a secret that must be removed wherever it occurs in a text. Ordinary words, which occur in
/// any text, are none: removing `production` or `main`, since a variable has it, would make texts wrong. In its own place such
/// a value is hidden by [`is_secret_name`] as before.
#[must_use]
pub fn is_secret_in_texts(name: &str, value: &str) -> bool {
    let words = words(name);
    let is_plain = words.last().is_some_and(|it| PLAIN.contains(&it.as_str()));
    let is_number = value.len() < MIN_RANDOM_LENGTH && value.bytes().all(|b| b.is_ascii_digit());
    let is_path = value.starts_with(['/', '~', '.']);
    let is_ordinary = is_number || is_path || is_no_key(value);
    looks_like_key(value)
        || is_random(value)
        || value.len() >= MIN_SECRET_LENGTH && !is_ordinary && !is_plain && is_secret_name(name)
}

/// Returns whether a key is one of the words that settings have in the place of a key that nobody checks.
#[must_use]
pub fn is_no_key(value: &str) -> bool {
    NO_KEYS.contains(&value.to_lowercase().as_str())
}

/// Returns whether nobody would write it: a long run of hexadecimal digits, or letters in both cases with digits.
fn is_random(value: &str) -> bool {
    let has = |is: fn(&u8) -> bool| value.as_bytes().iter().any(is);
    let is_part = |b: u8| b.is_ascii_alphanumeric() || b"+/=_-".contains(&b);
    let is_hex = value.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    let is_mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    value.len() >= MIN_RANDOM_LENGTH
        && !value.starts_with('/')
        && value.bytes().all(is_part)
        && has(u8::is_ascii_digit)
        && (is_hex || is_mixed)
}

/// Characters that end a key in a text.
const ENDS_KEY: &str = "\"'`,;:=<>()[]{}|&";
/// Schemes of the header `Authorization`.
const SCHEMES: [&str; 3] = ["basic", "bearer", "token"];

/// Returns whether a text contains a secret: a private key, a word that looks like a key or that nobody would write,
/// the credentials of a header, or an address with a login.
#[must_use]
pub fn contains_secret(text: &str) -> bool {
    let mut words = text.split(|c: char| c.is_whitespace() || ENDS_KEY.contains(c));
    let mut pairs = text.split_whitespace().zip(text.split_whitespace().skip(1));
    let is_scheme = |word: &str| SCHEMES.iter().any(|it| word.eq_ignore_ascii_case(it));
    text.contains("-----BEGIN ")
        || words.any(|word| looks_like_key(word) || is_random(word))
        || pairs.any(|(first, second)| {
            is_scheme(first.trim_start_matches(['"', '\''])) && second.len() >= MIN_SECRET_LENGTH
                || is_login_option(first, second)
        })
        || without_logins(text, "").is_some()
}

/// Returns whether two words are the option of a user, as curl's, with a password.
fn is_login_option(option: &str, value: &str) -> bool {
    let login = value.split_once(':');
    ["-u", "--user"].contains(&option) && login.is_some_and(|(_, password)| !password.is_empty())
}

/// Splits `accountKey`, `account_key` or `ACCOUNT-KEY` into words in lower case.
#[must_use]
pub fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for c in name.chars() {
        let is_new = !c.is_alphanumeric() || c.is_uppercase() && was_small;
        if is_new {
            words.push(String::new());
        }
        was_small = c.is_lowercase() || c.is_ascii_digit();
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|it| !it.is_empty());
    words
}

/// Removes credentials from the URLs in a text: passwords before the host, keys among the parameters. `None` if there are none.
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

/// A user name of this length is a token.
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
    let shown: Vec<String> = query
        .split('&')
        .map(|parameter| match parameter.split_once('=') {
            Some((name, value)) if !value.is_empty() && is_secret_parameter(name) => {
                format!("{name}={stand_in}")
            }
            _ => parameter.to_owned(),
        })
        .collect();
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
    fn ordinary_values_stay_in_texts() {
        for (name, value) in [
            ("NODE_ENV", "production"),
            ("GIT_BRANCH", "main"),
            ("DEBUG", "true"),
            ("RETRIES", "1"),
            ("USER", "octocat-1990"),
            ("content-type", "application/json"),
            ("LANG", "en_US.UTF-8"),
            ("RUST_LOG", "info,sqlx=warn"),
            ("IMAGE", "node-20.11.1-alpine"),
            ("DATABASE_HOST", "db.internal.example"),
            ("PROJECT_ROOT", "/home/me/A-Project-Of-2024-And-Later"),
            ("TOKENIZERS_PARALLELISM", "false"),
            ("SECRETS_REGION", "us-east-1"),
            ("COOKIE_DOMAIN", "example.com"),
            ("TOKEN_TIMEOUT", "600000000"),
            ("apiKey", "ollama"),
            ("apiKey", "lm-studio"),
            ("apiKey", "not-needed"),
            ("PRIVATE_KEY_PATH", "/home/me/.ssh/id_rsa"),
        ] {
            assert!(!is_secret_in_texts(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("apiKey", "correcthorse"),
            ("DB_PASSWORD", "hunter2hunter2"),
            ("Authorization", "Bearer abcdefgh"),
            ("X", "sk-abcdefghijkl"),
            ("ANYTHING", "3f786850e387550fdab836ed7e6dc881de23001b"),
            ("ANYTHING", "wJalrXUtnFEMI7K7MDENGbPxRfiCYEXAMPLEKEY"),
            ("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE"),
        ] {
            assert!(is_secret_in_texts(name, value), "{name}={value}");
        }
    }

    #[test]
    fn secrets_are_known_by_their_names_or_as_what_nobody_chooses() {
        for name in [
            "apiKey",
            "key",
            "accountKey",
            "licence_key",
            "MY_PAT",
            "--pat",
            "cookie",
            "bearer",
            "sas",
            "signature",
            "passphrase",
            "connectionString",
            "sessionToken",
            "MY_CRED",
            "client-cert",
            "pwd",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "promptCacheKey",
            "prompt_cache_key",
            "setCacheKey",
            "maxTokens",
            "budgetTokens",
            "publicKey",
            "keyboard",
            "pattern",
            "author",
            "passes",
            "reasoningEffort",
            "monkey",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
        for (name, value, want) in [
            ("note", "hY7-ws92kq", true),
            ("licence", "ABCD-EFGH-IJKL", true),
            ("x", "sk-0123456789abc", true),
            ("reasoningEffort", "minimal", false),
            ("textVerbosity", "medium", false),
            ("include", "reasoning.encrypted_content", false),
            ("thinking", "enabled", false),
            ("anthropicBeta", "context-1m-2025-08-07", false),
            ("fallbackModel", "claude-3-7-sonnet-20250219", false),
            ("projectId", "my-project-12345", false),
            ("order", "anthropic", false),
            ("baseURL", "https://Host.test/V1", false),
            ("keyFilename", "/home/me/Key1.json", false),
            ("serviceTier", "flex", false),
            ("instructions", "Answer in 3 words", false),
        ] {
            assert_eq!(is_secret_option(name, value), want, "{name} {value}");
        }
    }

    #[test]
    fn secrets_in_texts_are_found() {
        for text in [
            "access-tokens = github.com=ghp_abcdefghij0123456789",
            "'http.extraheader'='Authorization: Bearer abcdefghijkl'",
            "Basic dXNlcjpwdw==",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl",
            r#"{"private_key":"-----BEGIN PRIVATE KEY-----\nMIIE"}"#,
            "x-team: 3f786850e387550fdab836ed7e6dc881de23001b",
            "--index https://user:password@host/simple",
            "sk_live_abcdefghijklmnop",
            "-u bob:hunter2",
        ] {
            assert!(contains_secret(text), "{text}");
        }
        for text in [
            "/usr/local/bin:/opt/node-v20.11.1-linux-x64/bin",
            "-C target-cpu=x86-64-v3 -C link-arg=-fuse-ld=lld",
            "--max-old-space-size=4096",
            "basic auth",
            "https://host/simple?page=2",
            "*.tar=01;31:*.tgz=01;31",
        ] {
            assert!(!contains_secret(text), "{text}");
        }
    }

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
