//! Secrets of a configuration: which values they are, taking them out, and putting them back (invariant 10).

use std::borrow::Cow;

use serde_json::Value;

use crate::opencode::jsonc;
use crate::origin::{child, last_key};

/// What stands in the place of a secret.
pub(crate) const REDACTED: &str = "(redacted)";

/// A document without its secrets, as [`crate::Loaded::redacted`] makes it.
#[must_use]
pub fn redacted(value: &Value) -> Value {
    let mut value = value.clone();
    redact(&mut value, "");
    value
}

/// The text of a file of settings without its secrets: the text itself where there are none, else what is left as plain JSON.
/// `None` where it is no JSON.
#[must_use]
pub fn redacted_text(text: &str) -> Option<Cow<'_, str>> {
    let value = jsonc::parse(text, "").ok()?.value;
    let shown = redacted(&value);
    if shown == value {
        return Some(Cow::Borrowed(text));
    }
    serde_json::to_string_pretty(&shown).ok().map(Cow::Owned)
}

/// Puts back what [`crate::Loaded::redacted`] took out of a document that came from it, and answers the places where it did not.
///
/// A secret goes back only where it came from: under the same provider or server, with nothing changed of where that sends
/// it (a plugin could have it sent to itself otherwise). A stand-in that is left is taken out, since nobody knows it as a
/// key.
pub fn restore(value: &mut Value, from: &Value) -> Vec<String> {
    let mut lost = Vec::new();
    let Value::Object(sections) = value else {
        return lost;
    };
    for (name, section) in sections.iter_mut() {
        let original = from.get(name);
        let pointer = child("", name);
        match (section, name.as_str()) {
            (Value::Object(entries), "provider" | "mcp") => {
                for (name, entry) in entries.iter_mut() {
                    let original = original.and_then(|section| section.get(name));
                    let same = original
                        .is_some_and(|original| destinations(original) == destinations(entry));
                    put_back(
                        entry,
                        original.filter(|_| same),
                        &child(&pointer, name),
                        &mut lost,
                    );
                }
            }
            (section, _) => {
                put_back(section, original, &pointer, &mut lost);
            }
        }
    }
    lost
}

/// Whatever of an entry says where its secrets go.
fn destinations(entry: &Value) -> Vec<Value> {
    const KEYS: [&str; 7] = [
        "baseURL",
        "npm",
        "api",
        "url",
        "command",
        "type",
        "enterpriseUrl",
    ];
    let mut found = Vec::new();
    let mut waiting = vec![entry];
    while let Some(Value::Object(fields)) = waiting.pop() {
        found.extend(KEYS.iter().filter_map(|key| fields.get(*key)).cloned());
        waiting.extend(fields.values().filter(|value| value.is_object()));
    }
    found
}

/// False for a stand-in that nothing can be put in the place of; its holder takes it out.
fn put_back(
    value: &mut Value,
    from: Option<&Value>,
    pointer: &str,
    lost: &mut Vec<String>,
) -> bool {
    match value {
        Value::Object(map) => {
            let mut gone = Vec::new();
            for (key, value) in map.iter_mut() {
                if !put_back(
                    value,
                    from.and_then(|from| from.get(key)),
                    &child(pointer, key),
                    lost,
                ) {
                    gone.push(key.clone());
                }
            }
            for key in gone {
                map.shift_remove(&key);
            }
        }
        // An item that was not touched is the original; of any other nobody knows which one it was.
        Value::Array(items) => {
            let originals = from.and_then(Value::as_array);
            for (index, item) in items.iter_mut().enumerate() {
                let pointer = child(pointer, &index.to_string());
                let original = originals.into_iter().flatten().find(|original| {
                    let mut shown = (*original).clone();
                    redact(&mut shown, &pointer);
                    shown == *item
                });
                put_back(item, original, &pointer, lost);
            }
        }
        leaf if leaf == REDACTED => match from {
            Some(original) if original != REDACTED => *leaf = original.clone(),
            _ => {
                lost.push(pointer.to_owned());
                return false;
            }
        },
        _ => {}
    }
    true
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
        let provider =
            |url: &str, key: &str| json!({"npm": "n", "options": {"apiKey": key, "baseURL": url}});
        let original = json!({"provider": {"p": provider("u", "k1"), "q": provider("u", "k2"), "r": provider("u", "k3")},
            "plugin": [["a", {"apiKey": "ka"}], ["b", {"apiKey": "kb"}]]});
        let mut shown = original.clone();
        redact(&mut shown, "");
        assert!(!shown.to_string().contains("\"k"), "{shown}");
        shown["provider"]["q"]["options"]["apiKey"] = json!("new");
        // Sent elsewhere, copied, reordered.
        shown["provider"]["r"]["options"]["baseURL"] = json!("http://elsewhere");
        shown["provider"]["copy"] = shown["provider"]["p"].clone();
        shown["plugin"].as_array_mut().unwrap().reverse();
        let lost = restore(&mut shown, &original);
        let want = json!({"p": provider("u", "k1"), "q": provider("u", "new"),
            "r": {"npm": "n", "options": {"baseURL": "http://elsewhere"}}, "copy": {"npm": "n", "options": {"baseURL": "u"}}});
        assert_eq!(
            lost.iter().filter(|p| p.starts_with("/provider")).count(),
            2,
            "{lost:?}"
        );
        assert_eq!(shown["provider"], want);
        assert_eq!(
            shown["plugin"],
            json!([["b", {"apiKey": "kb"}], ["a", {"apiKey": "ka"}]])
        );
        assert!(!shown.to_string().contains("(redacted)"), "{shown}");
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
