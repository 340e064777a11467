//! Configuration entries that plugins contribute by their `config` hooks and that this program starts (MCP servers, language
//! servers, formatters, and the shell lines in templates of commands) or requests (URLs of MCP servers and model
//! providers; also those of providers by their `auth` and `provider` hooks). Such an entry gets the sandbox of its plugin, and is
//! requested through the plugin's proxy; the user's own unmodified entries keep theirs.

use outrigger_config::narrow_providers;
use outrigger_plugins::Plugins;
use outrigger_sandbox::SandboxOverrides;
use outrigger_workspace::ProjectLocation;
use serde_json::{Value, json};

use crate::NOTHING;
use crate::lists::{Contributed, List};
use crate::provider_files::keep_files;
use crate::providers::places;

/// Keys of the configuration whose entries name programs or URLs, with their labels.
const STARTED: [(&str, &str); 5] = [
    ("provider", "provider"),
    ("mcp", "mcp"),
    ("lsp", "lsp"),
    ("formatter", "formatter"),
    ("command", "command"),
];
/// Keys that name a program which also works for the user, without a sandbox: only the user can choose it.
const OF_THE_USER: [&str; 1] = ["shell"];

/// Puts entries that plugins changed into their sandboxes; entries for which that is impossible are removed from the
/// configuration. `before` is the configuration that plugins were given.
pub async fn sandbox_contributions(
    plugins: &Plugins,
    before: &Value,
    after: &mut Value,
    location: &ProjectLocation,
    sandboxes: &SandboxOverrides,
) {
    for key in OF_THE_USER {
        if before.get(key) != after.get(key)
            && let Some(fields) = after.as_object_mut()
        {
            tracing::warn!(
                "[config] a plugin changed `{key}`, which only the user can choose: the change is ignored"
            );
            fields.shift_remove(key);
            fields.extend(before.get(key).map(|value| (key.to_owned(), value.clone())));
        }
    }
    for key in narrow_providers(after, before) {
        tracing::warn!(
            "[config] a plugin changed `{key}` to enable more providers, which only the user can do: they stay off"
        );
    }
    keep_files(before, after);
    for (key, built_in) in [
        ("formatter", outrigger_workspace::formatters::built_in()),
        ("lsp", outrigger_lsp::built_in()),
    ] {
        keep_others_off(key, &built_in, before, after);
    }
    let at = Contributed {
        plugins,
        location,
        sandboxes,
    };
    for list in List::ALL {
        at.hold(list, before, after).await;
    }
    for (key, label) in STARTED {
        for name in changed(key, before, after) {
            let at = format!("/{key}");
            let own = plugins.sandbox_of(&at, std::slice::from_ref(&name)).await;
            match own {
                Ok(Some(own)) if !asks(key, &after[key][&name]) || own.proxy().is_some() => {
                    sandboxes.set(format!("{label}:{name}"), own);
                }
                Ok(None) => {}
                other => {
                    let why = other.err().unwrap_or_else(|| NOTHING.to_owned());
                    tracing::warn!(
                        "[{label}:{name}] a plugin contributed it, and it has no sandbox: {why}; skipped"
                    );
                    if let Some(entries) = after.get_mut(key).and_then(Value::as_object_mut) {
                        entries.shift_remove(&name);
                    }
                }
            }
        }
    }
}

/// Limits a plugin's entry for an empty key to that entry, without the built-in programs that the key would enable: those run
/// for whatever the project contains, without a sandbox.
fn keep_others_off(key: &str, built_in: &[&str], before: &Value, after: &mut Value) {
    keep_disabled(key, before, after);
    let is_off =
        |value: Option<&Value>| matches!(value, None | Some(Value::Null | Value::Bool(false)));
    if !is_off(before.get(key)) || is_off(after.get(key)) {
        return;
    }
    match after.get_mut(key) {
        Some(Value::Object(entries)) => {
            for name in built_in {
                if !entries.contains_key(*name) {
                    entries.insert((*name).to_owned(), json!({ "disabled": true }));
                }
            }
        }
        _ => {
            tracing::warn!(
                "[config] a plugin tried to enable `{key}`, which only the user can do; it stays off"
            );
            if let Some(fields) = after.as_object_mut() {
                fields.shift_remove(key);
                fields.extend(before.get(key).map(|value| (key.to_owned(), value.clone())));
            }
        }
    }
}

/// Keeps entries off that the user disabled by name, unless a plugin contributes its own program under the name.
fn keep_disabled(key: &str, before: &Value, after: &mut Value) {
    let off = before
        .get(key)
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let Some(entries) = after.get_mut(key).and_then(Value::as_object_mut) else {
        return;
    };
    for (name, own) in off.filter(|(_, own)| own["disabled"] == true) {
        let brings = |entry: &Value| entry["disabled"] == true || entry.get("command").is_some();
        if !entries.get(name).is_some_and(brings) {
            tracing::warn!(
                "[config] a plugin tried to enable `{key}.{name}`, which only the user can do; it stays off"
            );
            entries.insert(name.clone(), own.clone());
        }
    }
}

/// Returns whether this program requests a URL in the entry.
fn asks(key: &str, entry: &Value) -> bool {
    match key {
        "provider" => !places(entry).is_empty(),
        "mcp" => entry.get("url").is_some(),
        _ => false,
    }
}

/// Returns the new or changed entries that name a program.
fn changed(key: &str, before: &Value, after: &Value) -> Vec<String> {
    let entries = after
        .get(key)
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let known = |name: &str| before.get(key).and_then(|all| all.get(name));
    entries
        .filter(|(name, entry)| match key {
            "provider" => places(entry) != known(name).map_or(Vec::new(), places),
            _ => known(name) != Some(*entry) && starts(key, entry),
        })
        .map(|(name, _)| name.clone())
        .collect()
}

fn starts(key: &str, entry: &Value) -> bool {
    match key {
        "command" => entry
            .get("template")
            .and_then(Value::as_str)
            .is_some_and(|template| template.contains("!`")),
        // The program of a built-in server or formatter is found on the PATH; its variables and options select it as well.
        "lsp" | "formatter" => entry.get("disabled") != Some(&Value::Bool(true)),
        _ => entry.get("command").is_some() || entry.get("url").is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn which_entries_are_a_plugins() {
        let before = json!({
            "mcp": { "mine": { "command": ["a"] }, "off": { "command": ["a"], "enabled": false } },
            "formatter": { "prettier": {} },
            "provider": {
                "mine": { "options": { "baseURL": "https://a.test/v1" } },
                "moved": { "options": { "baseURL": "https://b.test/v1" } },
            },
        });
        let after = json!({
            "mcp": {
                "mine": { "command": ["a"] }, "off": { "command": ["a"], "enabled": true },
                "new": { "command": ["b"] }, "far": { "type": "remote", "url": "https://a.test" },
            },
            "formatter": { "prettier": { "environment": { "A": "1" } }, "none": { "disabled": true } },
            "lsp": { "x": { "command": ["c"] } },
            "provider": {
                "mine": { "options": { "baseURL": "https://a.test/v1" }, "models": { "new": {} } },
                "moved": { "options": { "baseURL": " HTTP://127.0.0.1/v1" } },
                "new": { "api": "https://c.test" }, "known": { "npm": "@ai-sdk/openai" },
                "azure": { "options": { "resourceName": "theirs" } },
                "google-vertex": { "options": { "project": "theirs" } },
                "amazon-bedrock": { "options": { "profile": "yours", "region": "eu-west-1" } },
            },
            "command": { "plain": { "template": "say" }, "shell": { "template": "!`id`" } },
        });
        for (key, want) in [
            ("mcp", vec!["off", "new", "far"]),
            (
                "provider",
                vec!["moved", "new", "azure", "google-vertex", "amazon-bedrock"],
            ),
            ("formatter", vec!["prettier"]),
            ("lsp", vec!["x"]),
            ("command", vec!["shell"]),
        ] {
            assert_eq!(changed(key, &before, &after), want, "{key}");
        }
    }

    /// `true`, or an object for an empty key, would start whatever the project contains, without a sandbox.
    #[test]
    fn a_plugin_switches_no_others_on() {
        let off = json!({ "disabled": true });
        for (before, given, want) in [
            (json!({}), json!(true), Value::Null),
            (json!({ "formatter": false }), json!(true), json!(false)),
            (json!({}), json!({}), json!({ "a": off, "b": off })),
            (
                json!({}),
                json!({ "b": { "command": ["x"] } }),
                json!({ "a": off, "b": { "command": ["x"] } }),
            ),
            // The user's setting.
            (json!({ "formatter": true }), json!(true), json!(true)),
            (
                json!({ "formatter": {} }),
                json!({ "a": {} }),
                json!({ "a": {} }),
            ),
            (json!({ "formatter": true }), json!(false), json!(false)),
        ] {
            let mut after = before.clone();
            after["formatter"] = given.clone();
            keep_others_off("formatter", &["a", "b"], &before, &mut after);
            assert_eq!(after["formatter"], want, "{before} {given}");
        }
    }

    #[test]
    fn what_the_user_switched_off_stays_off() {
        let own = json!({ "a": { "disabled": true }, "b": { "command": ["b"] } });
        let brings = json!({ "a": { "command": ["x"] }, "b": { "command": ["b"] } });
        for (given, want) in [
            (json!({}), json!({ "a": { "disabled": true } })),
            (json!({ "a": {} }), json!({ "a": { "disabled": true } })),
            (
                json!({ "a": { "disabled": false } }),
                json!({ "a": { "disabled": true } }),
            ),
            // Its own program, in its own sandbox.
            (brings.clone(), brings),
            (json!(false), json!(false)),
        ] {
            let before = json!({ "lsp": own });
            let mut after = json!({ "lsp": given });
            keep_others_off("lsp", &["a"], &before, &mut after);
            assert_eq!(after["lsp"], want, "{given}");
        }
    }

    /// Keys without a meaning there change nothing.
    #[test]
    fn which_entries_name_addresses_that_are_asked() {
        for (key, entry, asked) in [
            (
                "provider",
                json!({ "options": { "baseURL": "\thttp://a.test" } }),
                true,
            ),
            (
                "provider",
                json!({ "command": ["x"], "api": "http://a.test" }),
                true,
            ),
            ("provider", json!({ "options": { "timeout": 5 } }), false),
            (
                "provider",
                json!({ "options": { "resourceName": "x" } }),
                true,
            ),
            (
                "mcp",
                json!({ "type": "remote", "url": "http://a.test", "command": ["x"] }),
                true,
            ),
            (
                "mcp",
                json!({ "type": "remote", "url": "http://a.test", "template": "x" }),
                true,
            ),
            ("mcp", json!({ "command": ["x", "http://a.test"] }), false),
            (
                "lsp",
                json!({ "command": ["x"], "initialization": { "url": "http://a.test" } }),
                false,
            ),
        ] {
            assert_eq!(asks(key, &entry), asked, "{key} {entry}");
        }
    }
}
