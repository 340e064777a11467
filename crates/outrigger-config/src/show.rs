//! Listing every value with where it came from, for `outrigger config show`.

use serde::Serialize;
use serde_json::Value;

use crate::load::{all_leaves, nearest};
use crate::origin::{child, last_key};
use crate::{Loaded, Origin};

/// What stands in the place of a secret.
const REDACTED: &str = "(redacted)";

/// One value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shown {
    /// JSON pointer in opencode.json's document, or the dotted name of a setting.
    pub name: String,
    /// Value; a secret is replaced (invariant 10).
    pub value: Value,
    /// Where it came from.
    pub origin: Origin,
}

impl Loaded {
    /// Every value of the merged document, in its order. `plugin_origins` is left out, since it says nothing new.
    pub fn show(&self) -> Vec<Shown> {
        let mut out = Vec::new();
        for pointer in all_leaves(&self.value) {
            let value = self.value.pointer(&pointer).unwrap_or(&Value::Null);
            match value {
                _ if pointer == "/plugin_origins" => {}
                Value::Array(items)
                    if !items.is_empty()
                        && matches!(pointer.as_str(), "/plugin" | "/instructions") =>
                {
                    for (index, item) in items.iter().enumerate() {
                        out.push(self.shown(format!("{pointer}/{index}"), item));
                    }
                }
                _ => out.push(self.shown(pointer, value)),
            }
        }
        out
    }

    fn shown(&self, pointer: String, value: &Value) -> Shown {
        let value = if is_secret(&pointer) {
            REDACTED.into()
        } else {
            value.clone()
        };
        Shown {
            origin: nearest(&self.origins, &pointer),
            name: pointer,
            value,
        }
    }

    /// Every setting of `outrigger.toml`, defaults included.
    pub fn show_settings(&self) -> Vec<Shown> {
        let values = self.settings.list();
        let origin = |name: &str| {
            self.settings_origins
                .get(name)
                .cloned()
                .unwrap_or(Origin::Default)
        };
        values
            .into_iter()
            .map(|(name, value)| Shown {
                origin: origin(&name),
                name,
                value,
            })
            .collect()
    }

    /// The merged document without its secrets, for everyone who was not granted them (invariant 10).
    #[must_use]
    pub fn redacted(&self) -> Value {
        let mut value = self.value.clone();
        redact(&mut value, "");
        value
    }
}

/// Puts back what [`Loaded::redacted`] took out of a document that came from it: every secret whose place still holds the
/// stand-in. What was changed on purpose stays changed.
pub fn restore(value: &mut Value, from: &Value) {
    match (value, from) {
        (Value::Object(map), Value::Object(from)) => {
            for (key, value) in map.iter_mut() {
                if let Some(from) = from.get(key) {
                    restore(value, from);
                }
            }
        }
        (Value::Array(items), Value::Array(from)) => {
            items
                .iter_mut()
                .zip(from)
                .for_each(|(value, from)| restore(value, from));
        }
        (leaf, from) if leaf == REDACTED => *leaf = from.clone(),
        _ => {}
    }
}

fn redact(value: &mut Value, pointer: &str) {
    match value {
        Value::Object(map) => map
            .iter_mut()
            .for_each(|(key, value)| redact(value, &child(pointer, key))),
        Value::Array(items) => {
            items
                .iter_mut()
                .enumerate()
                .for_each(|(i, value)| redact(value, &child(pointer, &i.to_string())));
        }
        Value::Null | Value::Bool(_) => {}
        leaf if is_secret(pointer) => *leaf = Value::from(REDACTED),
        _ => {}
    }
}

/// Whether a value is likely a secret by its name: keys, tokens, passwords, all headers and the environment of MCP
/// servers. Better one too many than one too few.
pub(crate) fn is_secret(pointer: &str) -> bool {
    let key = last_key(pointer)
        .to_ascii_lowercase()
        .replace(['_', '-'], "");
    let named = [
        "apikey",
        "token",
        "secret",
        "password",
        "authorization",
        "accesskey",
        "credential",
    ];
    let limit = key.ends_with("tokens");
    (!limit && named.iter().any(|name| key.contains(name)))
        || pointer.contains("/headers/")
        || (pointer.starts_with("/mcp/") && pointer.contains("/environment/"))
}

#[cfg(test)]
mod tests {
    use super::{is_secret, redact, restore};
    use serde_json::json;

    #[test]
    fn what_was_redacted_comes_back_unless_it_was_changed() {
        let original = json!({"provider": {"p": {"options": {"apiKey": "k1", "baseURL": "u"}}, "q": {"options": {"apiKey": "k2"}}}});
        let mut shown = original.clone();
        redact(&mut shown, "");
        assert!(!shown.to_string().contains("k1"), "{shown}");
        shown["provider"]["q"]["options"]["apiKey"] = json!("new");
        shown["agent"] = json!({"apiKey": "(redacted)"});
        restore(&mut shown, &original);
        let want = json!({"provider": {"p": {"options": {"apiKey": "k1", "baseURL": "u"}}, "q": {"options": {"apiKey": "new"}}},
            "agent": {"apiKey": "(redacted)"}});
        assert_eq!(shown, want);
    }

    #[test]
    fn secrets() {
        for (pointer, expected) in [
            ("/provider/p/options/apiKey", true),
            ("/provider/p/options/api_key", true),
            ("/mcp/m/headers/X-Any", true),
            ("/mcp/m/environment/FOO", true),
            ("/mcp/m/oauth/clientSecret", true),
            ("/provider/p/options/baseURL", false),
            ("/compaction/preserve_recent_tokens", false),
            ("/model", false),
        ] {
            assert_eq!(is_secret(pointer), expected, "{pointer}");
        }
    }
}
