//! The redactor: the one place where secrets are removed from the audit (invariant 10).

use std::sync::{Arc, LazyLock, RwLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use outrigger_protocol::keys::{KEY_PREFIXES, is_secret_in_texts, looks_like_key};
use outrigger_stdx::sync;
use serde_json::Value;

/// Replacement of a secret.
const REMOVED: &str = "[removed]";

/// Minimum length of a secret: local servers are configured with `x` or `none`, and removing those would make every
/// text unreadable.
const MIN_SECRET_LENGTH: usize = 6;

/// Parts of names whose value is a secret.
const NAMES: &[&str] = &[
    "api_key",
    "apikey",
    "api-key",
    "token",
    "secret",
    "password",
    "passwd",
    "authorization",
    "cookie",
    "credential",
    "private_key",
];

/// Removes secrets from texts: known values, words that look like keys, and what follows a name like `password=`.
/// Clones share the known values.
#[derive(Clone, Default)]
pub struct Redactor {
    values: Arc<RwLock<Vec<String>>>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Redactor")
    }
}

impl Redactor {
    /// Adds values that must never be shown: keys of providers, variables with a secret's name.
    pub fn hide(&self, values: impl IntoIterator<Item = String>) {
        let known = sync::read(&self.values);
        let is_new = |value: &String| value.len() >= MIN_SECRET_LENGTH && !known.contains(value);
        let new: Vec<String> = values.into_iter().filter(is_new).collect();
        drop(known);
        if new.is_empty() {
            return;
        }
        let mut known = sync::write(&self.values);
        for value in new {
            if !known.contains(&value) {
                known.push(value);
            }
        }
        // A value that contains another one is removed first, or its rest would remain.
        known.sort_by_key(|value| std::cmp::Reverse(value.len()));
    }

    /// Adds the values of variables that are likely secrets.
    pub fn hide_environment<'a>(
        &self,
        variables: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) {
        // A path, a boolean or a region is not a secret, and may occur in any text.
        let found = variables.into_iter();
        let found = found.filter(|(name, value)| is_secret_in_texts(name, value));
        self.hide(found.map(|(_, value)| value.clone()));
    }

    /// Removes the secrets from a text.
    pub fn clean(&self, text: &mut String) {
        {
            let known = sync::read(&self.values);
            for value in known.iter() {
                if text.contains(value.as_str()) {
                    *text = text.replace(value.as_str(), REMOVED);
                }
            }
        }
        if is_suspect(text) {
            *text = clean_words(text);
        }
    }

    /// Removes secrets from the texts of a value. A text under the name of a secret is one; `name` is the name of the value.
    pub fn clean_value(&self, name: &str, value: &mut Value) {
        match value {
            Value::String(text) if !text.is_empty() && is_secret(name) => REMOVED.clone_into(text),
            Value::String(text) => self.clean(text),
            Value::Array(items) => items.iter_mut().for_each(|it| self.clean_value(name, it)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.clean_value(name, value);
                }
            }
            _ => {}
        }
    }
}

fn is_secret(name: &str) -> bool {
    is_name(name) || name.to_ascii_uppercase().ends_with("_KEY")
}

// Most texts contain nothing suspicious: one pass without allocation for them. Many are one small word, which follows
// no name and does not look like a key.
fn is_suspect(text: &str) -> bool {
    if text.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return false;
    }
    if text.len() > LONG
        && let Some(suspicious) = SUSPICIOUS.as_ref()
    {
        return suspicious.is_match(text);
    }
    KEY_PREFIXES.iter().chain(MARKS).any(|p| text.contains(p))
        || NAMES.iter().any(|name| contains_name(text, name))
}

/// What else stands before a secret.
const MARKS: &[&str] = &["://", "earer ", "asic "];

/// Bytes of a text from which on one pass for everything costs less than one for each.
const LONG: usize = 1024;

/// All that makes a text suspicious, in any case: what it finds too much, the words of the text decide.
static SUSPICIOUS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let all = KEY_PREFIXES.iter().chain(MARKS).chain(NAMES);
    let mut builder = AhoCorasick::builder();
    // As fast as it gets, for some tens of kilobytes: it goes over each long text that a record keeps.
    builder
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(all)
        .ok()
});

fn contains_name(text: &str, name: &str) -> bool {
    text.as_bytes()
        .windows(name.len())
        .any(|window| window.eq_ignore_ascii_case(name.as_bytes()))
}

fn is_space(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '"' | '\'' | '`' | ',' | ';' | '&' | '|' | '(' | ')' | '{' | '}'
        )
}

/// Word by word, separators kept.
fn clean_words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Whether the previous word marks the next one: `--password X`, `Authorization: Bearer X`.
    let mut next_is_secret = false;
    let mut was_name = false;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(is_space).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        if !word.is_empty() {
            let scheme = word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic");
            if next_is_secret && !scheme && !word.starts_with('-') {
                out.push_str(REMOVED);
                next_is_secret = false;
            } else {
                out.push_str(&clean_word(word));
                let name = word.trim_end_matches([':', '=']);
                // In JSON, a quote is between a name and its colon.
                next_is_secret = scheme
                    || name.is_empty() && was_name
                    || (word.len() > name.len() || word.starts_with('-')) && is_name(name);
                was_name = is_name(name);
            }
        }
        let gap = tail.find(|c| !is_space(c)).unwrap_or(tail.len());
        let (gap, next) = tail.split_at(gap);
        out.push_str(gap);
        rest = next;
    }
    out
}

fn is_name(name: &str) -> bool {
    NAMES.iter().any(|part| contains_name(name, part))
}

fn clean_word(word: &str) -> String {
    if let Some((scheme, rest)) = word.split_once("://")
        && let Some((login, host)) = rest.split_once('@')
        && login.contains(':')
        && !login.contains('/')
    {
        return format!("{scheme}://{REMOVED}@{}", clean_word(host));
    }
    // In a URL the name follows the path: `https://h/p?token=x`.
    for sign in ['=', ':'] {
        if let Some((name, value)) = word.split_once(sign)
            && !value.is_empty()
            && !value.starts_with("//")
        {
            if is_name(name.rsplit(['?', '/']).next().unwrap_or(name)) {
                return format!("{name}{sign}{REMOVED}");
            }
            return format!("{name}{sign}{}", clean_word(value));
        }
    }
    if looks_like_key(word) {
        REMOVED.to_owned()
    } else {
        word.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_taken_out_and_the_rest_stays() {
        let redactor = Redactor::default();
        redactor.hide([
            "hunter2".to_owned(),
            "hunter2hunter2".to_owned(),
            "x".to_owned(),
        ]);
        for (text, want) in [
            ("git push origin main", "git push origin main"),
            ("say hunter2hunter2 x", "say [removed] x"),
            (
                "curl -H 'Authorization: Bearer abc.def' https://h/x",
                "curl -H 'Authorization: Bearer [removed]' https://h/x",
            ),
            (
                "curl https://me:pw@host/path",
                "curl https://[removed]@host/path",
            ),
            (
                "curl https://host/a?token=abcd&x=1",
                "curl https://host/a?token=[removed]&x=1",
            ),
            ("API_KEY=abc make", "API_KEY=[removed] make"),
            (
                "mysql --password abc -u me",
                "mysql --password [removed] -u me",
            ),
            ("mysql --password=abc", "mysql --password=[removed]"),
            ("echo sk-abcdefghijkl", "echo [removed]"),
            ("a task-force and sk-8", "a task-force and sk-8"),
            ("the token is read", "the token is read"),
            ("src/token.rs", "src/token.rs"),
            ("{\"password\":\"abc\"}", "{\"password\":\"[removed]\"}"),
            ("", ""),
        ] {
            let mut text = text.to_owned();
            redactor.clean(&mut text);
            assert_eq!(text, want);
        }
        assert_eq!(format!("{redactor:?}"), "Redactor");
    }

    /// A long text is looked through in another way, with the same result.
    #[test]
    fn a_long_text_is_cleaned_as_a_short_one() {
        let redactor = Redactor::default();
        let padding = "plain words of a text\n".repeat(200);
        for text in [
            "Authorization: Bearer abc.def",
            "curl https://me:pw@host/path",
            "Api_Key=abc",
            "echo sk-abcdefghijkl",
            "the token is read",
            "SK-ABCDEFGHIJKL is none",
        ] {
            let (mut short, mut long) = (text.to_owned(), format!("{padding}{text}\n{padding}"));
            redactor.clean(&mut short);
            redactor.clean(&mut long);
            assert_eq!(long, format!("{padding}{short}\n{padding}"));
        }
    }

    #[test]
    fn a_text_at_a_secrets_name_is_one() {
        let redactor = Redactor::default();
        redactor.hide(["hunter2".to_owned()]);
        let mut value = serde_json::json!({
            "headers": {"Authorization": "abc", "X-Api-Key": ["d"], "accept": "e hunter2"}, "max_tokens": 5, "DEPLOY_KEY": "f", "token": "",
        });
        redactor.clean_value("config", &mut value);
        let want = serde_json::json!({
            "headers": {"Authorization": "[removed]", "X-Api-Key": ["[removed]"], "accept": "e [removed]"}, "max_tokens": 5,
            "DEPLOY_KEY": "[removed]", "token": "",
        });
        assert_eq!(value, want);
        let mut value = serde_json::json!("abc");
        redactor.clean_value("apiKey", &mut value);
        assert_eq!(value, "[removed]");
    }

    proptest::proptest! {
        /// Whatever the environment has under such names, a text stays as it is.
        #[test]
        fn ordinary_values_of_the_environment_stay(
            name in "(NODE_ENV|BRANCH|USER|LANG|TOKENIZERS_PARALLELISM|COOKIE_DOMAIN)",
            value in "(true|1|main|production|[a-z]{1,12}(-[a-z0-9]{1,6})?|[0-9]{1,9}|/[a-zA-Z0-9/]{1,20})",
            before in "[a-z ]{0,20}",
        ) {
            proptest::prop_assume!(!is_secret_in_texts("", &value));
            let redactor = Redactor::default();
            // A word after the name of a secret is one, as ever.
            let name = name.replace("TOKENIZERS_PARALLELISM", "SECRETS_REGION");
            redactor.hide_environment([(&name, &value)]);
            let text = format!("{before} {value} {before}/{value}.x");
            let mut cleaned = text.clone();
            redactor.clean(&mut cleaned);
            proptest::prop_assert_eq!(cleaned, text);
        }

        #[test]
        fn a_known_value_is_never_left(before in ".{0,20}", value in "[a-zA-Z0-9=:/@-]{6,20}", after in ".{0,20}") {
            proptest::prop_assume!(!REMOVED.contains(value.as_str()));
            let redactor = Redactor::default();
            redactor.hide([value.clone()]);
            let mut text = format!("{before}{value}{after}");
            redactor.clean(&mut text);
            proptest::prop_assert!(!text.contains(&value), "{}", text);
        }
    }
}
