//! What plugins bring by their `config` hooks and this program starts: MCP servers, language servers, formatters, and the
//! shell lines in templates of commands. Such an entry gets the box of its plugin; the user's own entries, left as they
//! were, keep theirs (issue 5, item 5).

use outrigger_plugins::Plugins;
use outrigger_sandbox::OwnBoxes;
use serde_json::Value;

/// Keys of the configuration whose entries name programs, and how the processes of each are labelled.
const STARTED: [(&str, &str); 4] = [
    ("mcp", "mcp"),
    ("lsp", "lsp"),
    ("formatter", "formatter"),
    ("command", "command"),
];
/// Keys that name a program which works for the user too, in no box: the user's to choose.
const OF_THE_USER: [&str; 1] = ["shell"];

/// The label of what the template of a command runs.
pub(crate) fn command_label(name: &str) -> String {
    format!("command:{name}")
}

/// Puts what plugins changed into their boxes; what cannot be is taken out of the configuration. `before` is the
/// configuration as plugins were given it.
pub(crate) async fn put_into_boxes(
    plugins: &Plugins,
    before: &Value,
    after: &mut Value,
    boxes: &OwnBoxes,
) {
    for key in OF_THE_USER {
        if before.get(key) != after.get(key)
            && let Some(fields) = after.as_object_mut()
        {
            tracing::warn!(
                "[config] a plugin changed `{key}`, which is the user's to choose: it stays"
            );
            fields.shift_remove(key);
            fields.extend(before.get(key).map(|value| (key.to_owned(), value.clone())));
        }
    }
    for (key, label) in STARTED {
        for name in changed(key, before, after) {
            match plugins.box_of(key, &name).await {
                Ok(Some(own)) => boxes.set(format!("{label}:{name}"), own),
                Ok(None) => {}
                Err(why) => {
                    tracing::warn!(
                        "[{label}:{name}] a plugin brought it, and it has no box: {why}; left out"
                    );
                    if let Some(entries) = after.get_mut(key).and_then(Value::as_object_mut) {
                        entries.shift_remove(&name);
                    }
                }
            }
        }
    }
}

/// The entries that are new or other than before, where they name a program.
fn changed(key: &str, before: &Value, after: &Value) -> Vec<String> {
    let entries = after
        .get(key)
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let known = |name: &str| before.get(key).and_then(|all| all.get(name));
    entries
        .filter(|(name, entry)| known(name) != Some(*entry) && starts(key, entry))
        .map(|(name, _)| name.clone())
        .collect()
}

fn starts(key: &str, entry: &Value) -> bool {
    match key {
        "command" => entry
            .get("template")
            .and_then(Value::as_str)
            .is_some_and(|template| template.contains("!`")),
        // What a built-in server or formatter runs is found on the PATH; its variables and options choose it, too.
        "lsp" | "formatter" => entry.get("disabled") != Some(&Value::Bool(true)),
        _ => entry.get("command").is_some(),
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
        });
        let after = json!({
            "mcp": {
                "mine": { "command": ["a"] }, "off": { "command": ["a"], "enabled": true },
                "new": { "command": ["b"] }, "far": { "type": "remote", "url": "https://a.test" },
            },
            "formatter": { "prettier": { "environment": { "A": "1" } }, "none": { "disabled": true } },
            "lsp": { "x": { "command": ["c"] } },
            "command": { "plain": { "template": "say" }, "shell": { "template": "!`id`" } },
        });
        for (key, want) in [
            ("mcp", vec!["off", "new"]),
            ("formatter", vec!["prettier"]),
            ("lsp", vec!["x"]),
            ("command", vec!["shell"]),
        ] {
            assert_eq!(changed(key, &before, &after), want, "{key}");
        }
    }
}
