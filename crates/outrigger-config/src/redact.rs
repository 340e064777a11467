//! Secrets of a configuration: detecting, removing and restoring them (invariant 10).

use std::borrow::Cow;

use outrigger_protocol::keys::{
    is_secret_name, is_secret_option, looks_like_key, names_secret_part, without_logins,
};
use outrigger_schema::child;
use serde_json::Value;

use crate::opencode::jsonc;
use crate::origin::last_key;

/// Replacement of a secret.
pub(crate) const REDACTED: &str = "(redacted)";

/// Returns a document without its secrets. Only [`crate::Loaded::redacted`] knows those that its texts took from elsewhere.
#[must_use]
pub fn redacted(value: &Value) -> Value {
    without(value, &[])
}

/// Returns a document without its secrets, and without these.
#[must_use]
pub fn without(value: &Value, known: &[String]) -> Value {
    let mut value = value.clone();
    redact(&mut value, "", known);
    value
}

/// Returns the text of a settings file without its secrets: the text itself if there are none, else the rest as plain JSON.
/// `None` if it is not JSON.
#[must_use]
pub fn redacted_text(text: &str) -> Option<Cow<'_, str>> {
    let value = jsonc::parse(text, "").ok()?.value;
    let shown = redacted(&value);
    if shown == value {
        return Some(Cow::Borrowed(text));
    }
    serde_json::to_string_pretty(&shown).ok().map(Cow::Owned)
}

/// Returns whether a TOML or YAML text assigns a value to a name that is likely a secret's ([`redacted`]).
#[must_use]
pub fn names_secret(text: &str) -> bool {
    text.lines().any(|line| {
        let (name, value) = line.split_once(['=', ':']).unwrap_or_default();
        let name = name.trim().trim_start_matches("- ");
        let value = value.trim();
        !value.is_empty()
            && value.parse::<f64>().is_err()
            && is_secret_name(name.trim_matches(['"', '\'']))
    })
}

/// Restores what [`without`] removed from a document, and returns the positions where it did not. `from`: the document before.
///
/// A secret is restored only at its origin: under the same provider, server, formatter or agent, and only if its recipient is
/// unchanged (otherwise a plugin could have it sent to itself). A remaining placeholder is removed, since it is not a valid key.
pub fn restore(value: &mut Value, from: &Value, known: &[String]) -> Vec<String> {
    let mut lost = Vec::new();
    let shown = without(from, known);
    let Value::Object(sections) = value else {
        return lost;
    };
    for (name, section) in sections.iter_mut() {
        let pointer = child("", name);
        let original = Original {
            real: from.get(name),
            shown: shown.get(name),
        };
        match (section, name.as_str()) {
            (Value::Object(entries), section) if SECTIONS.contains(&section) => {
                for (name, entry) in entries.iter_mut() {
                    let pointer = child(&pointer, name);
                    let mut original = original.at(name);
                    let now = redacted_at(entry, &pointer, known);
                    let is_same = |shown: &Value| {
                        use_of(section, shown.clone()) == use_of(section, now.clone())
                    };
                    if !original.shown.is_some_and(is_same) {
                        original = Original::default();
                    }
                    put_back(entry, original, &pointer, &mut lost);
                }
            }
            (section, _) => {
                put_back(section, original, &pointer, &mut lost);
            }
        }
    }
    lost
}

fn redacted_at(value: &Value, pointer: &str, known: &[String]) -> Value {
    let mut value = value.clone();
    redact(&mut value, pointer, known);
    value
}

/// A value with its redacted form.
#[derive(Clone, Copy, Default)]
struct Original<'a> {
    real: Option<&'a Value>,
    shown: Option<&'a Value>,
}

impl<'a> Original<'a> {
    fn at(self, key: &str) -> Self {
        Self {
            real: self.real.and_then(|it| it.get(key)),
            shown: self.shown.and_then(|it| it.get(key)),
        }
    }

    /// Returns the original of a list item: the one at its position, or the only one with the same redacted form.
    fn of_item(self, index: usize, item: &Value) -> Self {
        let list = |value: Option<&'a Value>| value.and_then(Value::as_array);
        let (Some(real), Some(shown)) = (list(self.real), list(self.shown)) else {
            return Self::default();
        };
        let mut alike = (0..shown.len()).filter(|at| shown.get(*at) == Some(item));
        let at = if shown.get(index) == Some(item) {
            Some(index)
        } else {
            alike.next().filter(|_| alike.next().is_none())
        };
        Self {
            real: at.and_then(|at| real.get(at)),
            shown: at.and_then(|at| shown.get(at)),
        }
    }
}

/// Sections whose entries pass their secrets to a program or send them to a URL.
const SECTIONS: [&str; 6] = ["agent", "formatter", "lsp", "mcp", "mode", "provider"];

/// Returns the part of a redacted entry that determines who gets its secrets. For a started program that is everything except
/// whether and for how long it runs: a variable (`PYTHONPATH`, `HTTPS_PROXY`) or a folder makes a program run other code or send
/// data elsewhere just as its command does.
fn use_of(section: &str, mut shown: Value) -> Value {
    let Value::Object(fields) = &mut shown else {
        return shown;
    };
    match section {
        "agent" | "mode" => fields.retain(|key, _| key == "model"),
        "provider" => {
            fields.retain(|key, _| !["name", "whitelist", "blacklist"].contains(&key.as_str()));
            if let Some(Value::Object(models)) = fields.get_mut("models") {
                models.values_mut().for_each(keep_address);
                models.retain(|_, model| model.as_object().is_some_and(|kept| !kept.is_empty()));
            }
            if let Some(Value::Object(options)) = fields.get_mut("options") {
                options.retain(|key, _| !HARMLESS_OPTIONS.contains(&key.as_str()));
            }
            fields.retain(|_, value| value.as_object().is_none_or(|fields| !fields.is_empty()));
        }
        _ => fields.retain(|key, _| !["enabled", "disabled", "timeout"].contains(&key.as_str())),
    }
    shown
}

/// Options of a provider that do not change the destination of a request. Headers are sent where the key is sent.
const HARMLESS_OPTIONS: [&str; 4] = ["chunkTimeout", "headers", "setCacheKey", "timeout"];

/// Keeps the part of a model that determines the destination of its requests.
fn keep_address(model: &mut Value) {
    if let Value::Object(fields) = model {
        fields.retain(|key, _| ["api", "npm", "provider"].contains(&key.as_str()));
    }
}

/// Restores a value; returns false for a placeholder without an original, which its parent removes.
fn put_back(value: &mut Value, from: Original<'_>, pointer: &str, lost: &mut Vec<String>) -> bool {
    match value {
        Value::Object(map) => {
            let mut gone = Vec::new();
            for (key, value) in map.iter_mut() {
                if !put_back(value, from.at(key), &child(pointer, key), lost) {
                    gone.push(key.clone());
                }
            }
            for key in gone {
                map.shift_remove(&key);
            }
        }
        // A list that lacks an item differs.
        Value::Array(items) => {
            let mut is_whole = true;
            for (index, item) in items.iter_mut().enumerate() {
                let original = from.of_item(index, item);
                let pointer = child(pointer, &index.to_string());
                is_whole &= put_back(item, original, &pointer, lost);
            }
            return is_whole;
        }
        leaf => match from {
            Original {
                real: Some(real),
                shown: Some(shown),
            } if shown == leaf => *leaf = real.clone(),
            _ if is_stand_in(leaf, pointer) => {
                lost.push(pointer.to_owned());
                return false;
            }
            _ => {}
        },
    }
    true
}

/// Returns whether a value is a placeholder, or contains one in texts that are URLs or arguments.
fn is_stand_in(leaf: &Value, pointer: &str) -> bool {
    let sections = ["/command/", "/formatter/", "/lsp/", "/mcp/", "/provider/"];
    let is_sent = || sections.iter().any(|it| pointer.starts_with(it));
    leaf == REDACTED || is_sent() && leaf.as_str().is_some_and(|text| text.contains(REDACTED))
}

fn redact(value: &mut Value, pointer: &str, known: &[String]) {
    match value {
        Value::Object(map) => map
            .iter_mut()
            .for_each(|(key, value)| redact(value, &child(pointer, key), known)),
        Value::Array(items) => {
            items
                .iter_mut()
                .enumerate()
                .for_each(|(i, value)| redact(value, &child(pointer, &i.to_string()), known));
            if is_command(pointer) {
                hide_arguments(items);
            }
        }
        Value::Null | Value::Bool(_) => {}
        leaf if is_secret(pointer) => *leaf = Value::from(REDACTED),
        Value::String(text) if is_secret_value(pointer, text) => *text = REDACTED.to_owned(),
        Value::String(text) => hide_within(text, known),
        _ => {}
    }
}

/// Removes known secrets, and logins in URLs, from texts.
fn hide_within(text: &mut String, known: &[String]) {
    for secret in known {
        if text.contains(secret.as_str()) {
            *text = text.replace(secret.as_str(), REDACTED);
        }
    }
    if let Some(shown) = without_logins(text, REDACTED) {
        *text = shown;
    }
}

/// Returns whether a list is the command of a started program.
fn is_command(pointer: &str) -> bool {
    let sections = ["/formatter/", "/lsp/", "/mcp/"];
    sections.iter().any(|it| pointer.starts_with(it)) && last_key(pointer) == "command"
}

/// What the preceding words of a command indicate about one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Before {
    #[default]
    Nothing,
    /// It is a secret.
    Secret,
    /// It is the value of an option of one letter, whose name is no indication.
    Letter,
}

/// Removes the secrets from arguments: `--token X`, `--token=X`, `-p X`, `-e API_KEY=X`, `-H "Authorization: Bearer X"`, and
/// words that look like keys; also within one, for `sh -c`.
fn hide_arguments(items: &mut [Value]) {
    let mut before = Before::default();
    for item in items {
        let Value::String(text) = item else { continue };
        let mut shown = String::with_capacity(text.len());
        for word in text.split_inclusive(char::is_whitespace) {
            let bare = word.trim_end();
            let space = word.get(bare.len()..).unwrap_or_default();
            shown.push_str(&shown_word(bare, &mut before));
            shown.push_str(space);
        }
        *text = shown;
    }
}

/// Returns the redacted form of a word of a command.
fn shown_word(word: &str, said: &mut Before) -> String {
    const SCHEMES: [&str; 3] = ["basic", "bearer", "token"];
    const QUOTES: [char; 2] = ['"', '\''];
    let is_name = |name: &str| {
        let name = name.trim_start_matches(QUOTES).trim_start_matches('-');
        !name.is_empty() && is_secret_name(name)
    };
    let plain = word.trim_matches(QUOTES);
    if word.is_empty()
        || *said == Before::Secret && SCHEMES.contains(&plain.to_ascii_lowercase().as_str())
    {
        return word.to_owned();
    }
    let is_value = match std::mem::take(said) {
        Before::Nothing => false,
        Before::Secret => !word.starts_with('-'),
        Before::Letter => !word.starts_with('-') && is_secret_value_of_letter(plain),
    };
    if is_value || looks_like_key(plain) && !plain.contains('=') {
        return word.replace(plain, REDACTED);
    }
    match word.split_once(['=', ':']) {
        Some((name, "")) if is_name(name) => *said = Before::Secret,
        Some((name, value)) if is_name(name) && !value.starts_with("//") => {
            let (before, _) = word.split_at(name.len() + 1);
            let end = if value.ends_with(QUOTES) {
                &value[value.len() - 1..]
            } else {
                ""
            };
            return format!("{before}{REDACTED}{end}");
        }
        None if word.starts_with("--") && is_name(word) => *said = Before::Secret,
        // The text after `-c` is code.
        None if is_letter(word) && word != "-c" => *said = Before::Letter,
        _ => {}
    }
    word.to_owned()
}

/// `-p`.
fn is_letter(word: &str) -> bool {
    word.strip_prefix('-')
        .map(str::as_bytes)
        .is_some_and(|it| it.len() == 1 && it[0].is_ascii_alphabetic())
}

/// Returns whether the value after `-p` looks like a secret, and not like a package (`@acme/x`, `x@1.2`), an address with a port
/// or a setting.
fn is_secret_value_of_letter(value: &str) -> bool {
    !value.contains(['@', '=', ':']) && is_secret_option("", value)
}

/// Sections whose keys are names of options, not patterns.
const WITH_OPTIONS: [&str; 4] = ["/formatter/", "/lsp/", "/mcp/", "/provider/"];

/// Returns whether a value is likely a secret by its name: keys, tokens, passwords, all headers and the environment of started
/// programs. Better one too many than one too few.
pub(crate) fn is_secret(pointer: &str) -> bool {
    let is_in = |folder: &str| pointer.contains(folder);
    let has_options = WITH_OPTIONS.iter().any(|it| pointer.starts_with(it));
    let is_started = has_options && !pointer.starts_with("/provider/");
    let is_option = has_options || pointer.rfind('/') == Some(0) || is_in("/options/");
    (is_option && is_secret_name(&last_key(pointer)))
        || names_secret_part(&last_key(pointer))
        || is_in("/headers/")
        || is_in("/credentials/")
        || is_started && (is_in("/environment/") || is_in("/env/"))
}

/// Returns whether an option of a provider, a model or an agent is likely a secret by its value.
fn is_secret_value(pointer: &str, text: &str) -> bool {
    let mut keys = pointer.trim_start_matches('/').split('/');
    let section = keys.next().unwrap_or_default();
    let is_option = matches!(section, "agent" | "mode" | "provider")
        && (pointer.contains("/options/") || pointer.contains("/variants/"));
    let is_index = |key: &str| key.bytes().all(|b| b.is_ascii_digit());
    let name = keys.rfind(|key| !is_index(key)).unwrap_or_default();
    is_option && is_secret_option(name, text)
}

#[cfg(test)]
mod tests;
