//! Secrets of a configuration: which values they are, taking them out, and putting them back (invariant 10).

use std::borrow::Cow;

use outrigger_protocol::keys::without_login;
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

/// Whether a text in TOML or YAML gives a value to a name that is likely a secret's ([`redacted`]).
#[must_use]
pub fn names_secret(text: &str) -> bool {
    text.lines().any(|line| {
        let (name, value) = line.split_once(['=', ':']).unwrap_or_default();
        let name = name.trim().trim_start_matches("- ");
        let value = value.trim();
        !value.is_empty()
            && value.parse::<f64>().is_err()
            && is_secret(&child("", name.trim_matches(['"', '\''])))
    })
}

/// Puts back what [`crate::Loaded::redacted`] took out of a document that came from it, and answers the places where it did not.
///
/// A secret goes back only where it came from: under the same provider, server, formatter or agent, with nothing changed of who
/// gets it there (a plugin could have it sent to itself otherwise). A stand-in that is left is taken out, since nobody knows it as a
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
            (Value::Object(entries), section) if SECTIONS.contains(&section) => {
                for (name, entry) in entries.iter_mut() {
                    let original = original.and_then(|section| section.get(name));
                    let pointer = child(&pointer, name);
                    let same = original.is_some_and(|original| {
                        use_of(section, original, &pointer) == use_of(section, entry, &pointer)
                    });
                    put_back(entry, original.filter(|_| same), &pointer, &mut lost);
                }
            }
            (section, _) => {
                put_back(section, original, &pointer, &mut lost);
            }
        }
    }
    lost
}

/// Sections whose entries give their secrets to a program or send them to an address.
const SECTIONS: [&str; 6] = ["agent", "formatter", "lsp", "mcp", "mode", "provider"];

/// What of an entry decides who gets its secrets. Of what is started that is all but whether and how long: a variable
/// (`PYTHONPATH`, `HTTPS_PROXY`) or a folder makes a program run other code or send elsewhere as well as its command does.
fn use_of(section: &str, entry: &Value, pointer: &str) -> Value {
    let mut shown = entry.clone();
    redact(&mut shown, pointer);
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

/// Options of a provider that change nothing of where a request goes. Headers go where the key goes.
const HARMLESS_OPTIONS: [&str; 4] = ["chunkTimeout", "headers", "setCacheKey", "timeout"];

/// What of a model says where its requests go.
fn keep_address(model: &mut Value) {
    if let Value::Object(fields) = model {
        fields.retain(|key, _| ["api", "npm", "provider"].contains(&key.as_str()));
    }
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
        leaf if leaf.as_str().is_some_and(|it| it.contains(REDACTED)) => match from {
            Some(original) if original != leaf && stands_in(leaf, original, pointer) => {
                *leaf = original.clone();
            }
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
        Value::String(text) => {
            let is_key = |name: &str| is_secret(&child("", name));
            if let Some(shown) = without_login(text, is_key, REDACTED) {
                *text = shown;
            }
        }
        _ => {}
    }
}

/// Whether this is what is shown of `original`.
fn stands_in(shown: &Value, original: &Value, pointer: &str) -> bool {
    let mut redacted = original.clone();
    redact(&mut redacted, pointer);
    redacted == *shown || shown == REDACTED
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
        "privatekey",
    ];
    let limit = key.ends_with("tokens");
    (!limit && named.iter().any(|name| key.contains(name)))
        || pointer.contains("/headers/")
        || pointer.contains("/credentials/")
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

    /// A plugin that changes anything of how a program runs, or where a provider is, gets none of its secrets.
    #[test]
    fn an_entry_that_runs_or_sends_otherwise_has_no_secrets() {
        let original = json!({
            "mcp": {"m": {"type": "local", "command": ["m"], "environment": {"API_TOKEN": "k1"}}},
            "formatter": {"f": {"command": ["f"], "environment": {"FMT_TOKEN": "k2"}, "extensions": [".x"]}},
            "lsp": {"l": {"command": ["l"], "env": {"LSP_TOKEN": "k3"}, "extensions": [".x"]}},
            "provider": {"p": {"options": {"apiKey": "k4", "baseURL": "u"}, "models": {"a": {}}}},
            "agent": {"a": {"model": "p/a", "prompt": "x", "options": {"apiKey": "k5"}}},
        });
        let mut shown = original.clone();
        redact(&mut shown, "");
        for (pointer, key, value, keeps) in [
            ("/mcp/m/environment", "PYTHONPATH", json!("/evil"), None),
            ("/mcp/m", "cwd", json!("/evil"), None),
            ("/mcp/m", "type", json!("remote"), None),
            ("/mcp/m", "enabled", json!(true), Some("k1")),
            ("/mcp/m", "timeout", json!(9), Some("k1")),
            (
                "/formatter/f/environment",
                "NODE_OPTIONS",
                json!("-r /evil"),
                None,
            ),
            ("/formatter/f", "extensions", json!([".y"]), None),
            ("/lsp/l/env", "LD_PRELOAD", json!("/evil.so"), None),
            ("/lsp/l", "initialization", json!({"path": "/evil"}), None),
            ("/lsp/l", "disabled", json!(false), Some("k3")),
            ("/provider/p/options", "baseURL", json!("v"), None),
            ("/provider/p/options", "resourceName", json!("evil"), None),
            ("/provider/p/options", "timeout", json!(9), Some("k4")),
            (
                "/provider/p/models",
                "b",
                json!({"name": "B", "limit": {"context": 9}}),
                Some("k4"),
            ),
            (
                "/provider/p/models",
                "b",
                json!({"provider": {"api": "v"}}),
                None,
            ),
            ("/provider/p", "npm", json!("evil"), None),
            ("/provider/p", "env", json!(["OTHER_KEY"]), None),
            ("/agent/a", "model", json!("evil/a"), None),
            ("/agent/a", "prompt", json!("y"), Some("k5")),
        ] {
            let mut changed = shown.clone();
            changed.pointer_mut(pointer).unwrap()[key] = value;
            let lost = restore(&mut changed, &original);
            let section = pointer.split('/').nth(1).unwrap();
            let text = changed[section].to_string();
            assert_eq!(
                lost.len(),
                usize::from(keeps.is_none()),
                "{pointer} {key}: {lost:?}"
            );
            assert_eq!(
                text.contains("\"k"),
                keeps.is_some(),
                "{pointer} {key}: {text}"
            );
            assert!(
                keeps.is_none_or(|it| text.contains(it)),
                "{pointer} {key}: {text}"
            );
        }
    }

    #[test]
    fn logins_in_addresses_and_flags_are_shown_to_nobody() {
        let original = json!({
            "provider": {"p": {"options": {
                "baseURL": "http://u:PASS@h.test/v1?x=1&key=KEY", "credentials": {"private_key": "PEM", "client_email": "me"},
            }}},
            "mcp": {"m": {"command": ["m", "--api-key=KEY", "--port=1"], "url": "https://h.test/mcp?api_key=KEY#x"}},
        });
        let mut shown = original.clone();
        redact(&mut shown, "");
        let text = shown.to_string();
        for secret in ["PASS", "KEY", "PEM"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert!(
            text.contains("@h.test/v1?x=1&key=") && text.contains("--port=1"),
            "{text}"
        );
        let mut again = shown.clone();
        redact(&mut again, "");
        assert_eq!(again, shown);
        assert!(restore(&mut shown, &original).is_empty());
        assert_eq!(shown, original);
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
