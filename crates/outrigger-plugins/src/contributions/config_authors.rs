//! The plugins whose `config` hooks added or changed an entry of the configuration, in the order of the chain.
//! What is run, read or requested for the entry is limited to what each of them may do, so that none lends another its rights. A plugin
//! that only changes a label of a provider or of its models is not counted.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use outrigger_plugin_registry::ConfigStep;
use outrigger_protocol::id::PluginId;
use serde_json::Value;

use crate::plugins::Plugins;

/// Settings of a provider that only show, sort or filter it. All others have a part in where requests go, and with what.
const PROVIDER_LABELS: [&str; 3] = ["blacklist", "name", "whitelist"];
/// Settings of a model that only describe it.
const MODEL_LABELS: [&str; 12] = [
    "attachment",
    "cost",
    "experimental",
    "family",
    "limit",
    "modalities",
    "name",
    "reasoning",
    "release_date",
    "status",
    "temperature",
    "tool_call",
];

impl Plugins {
    /// Returns the plugins whose `config` hooks put this entry there or changed it, in the order of the calls.
    #[must_use]
    pub fn configured_by(&self, key: &str, name: &str) -> Vec<PluginId> {
        self.ids(self.authors(&format!("/{key}"), name))
    }

    /// Returns whether one of them is a plugin of a project.
    #[must_use]
    pub fn is_configured_by_project(&self, key: &str, name: &str) -> bool {
        let is_local = |&index: &usize| self.0.registry.with(index, |it| it.local) == Some(true);
        let authors = self.authors(&format!("/{key}"), name);
        authors.iter().any(is_local)
    }

    /// Returns all plugins whose `config` hooks changed this place of the configuration or something in it, in the order of the calls.
    #[must_use]
    pub fn all_that_configured(&self, path: &[&str]) -> Vec<PluginId> {
        fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
            path.iter().try_fold(value, |value, key| value.get(*key))
        }
        self.that_changed(|step| at(&step.before, path) != at(&step.after, path))
    }

    /// Returns the plugins whose `config` hooks changed any of these keys of the configuration, in the order of the calls.
    #[must_use]
    pub fn configured_keys(&self, keys: &[&str]) -> Vec<PluginId> {
        self.that_changed(|step| {
            let mut keys = keys.iter();
            keys.any(|key| step.before.get(*key) != step.after.get(*key))
        })
    }

    /// Returns the plugins (by index) that put an entry of an object, or an item of a list, there or changed it.
    pub(super) fn authors(&self, at: &str, name: &str) -> Vec<usize> {
        let mut all = authors(&self.0.registry.config_steps(), at);
        all.remove(name).unwrap_or_default()
    }

    fn that_changed(&self, is: impl Fn(&ConfigStep) -> bool) -> Vec<PluginId> {
        let steps = self.0.registry.config_steps();
        let changed = steps.iter().filter(|step| is(step));
        self.ids(changed.map(|step| step.plugin).collect())
    }

    fn ids(&self, plugins: Vec<usize>) -> Vec<PluginId> {
        let mut ids: Vec<PluginId> = Vec::new();
        for index in plugins {
            let id = self.0.registry.with(index, |plugin| plugin.id.clone());
            ids.extend(id.map(PluginId).filter(|id| !ids.contains(id)));
        }
        ids
    }
}

/// Returns by whom (index) each entry of the object, or item of the list, at this JSON pointer was added, changed or removed, in the order
/// of the calls. What comes in the place of a removed entry, or is a copy of another one, is of their plugins, too.
fn authors(steps: &[Arc<ConfigStep>], at: &str) -> BTreeMap<String, Vec<usize>> {
    let mut all: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for step in steps {
        let before = entries(step.before.pointer(at));
        let after = entries(step.after.pointer(at));
        let gone: Vec<&String> = before
            .keys()
            .filter(|it| !after.contains_key(*it))
            .collect();
        let mut touched: Vec<(&String, Vec<usize>)> = Vec::new();
        for (name, value) in &after {
            let known = before.get(name);
            if known == Some(value) || known.is_some_and(|it| decides(at, it) == decides(at, value))
            {
                continue;
            }
            let is_new = !before.contains_key(name);
            let copied = before.iter().filter(|(_, other)| *other == value);
            let from = gone
                .iter()
                .copied()
                .chain(copied.map(|(name, _)| name))
                .filter(|_| is_new)
                .filter_map(|name| all.get(name));
            let by = from.flatten().copied().chain([step.plugin]);
            touched.push((name, by.collect()));
        }
        touched.extend(gone.into_iter().map(|name| (name, vec![step.plugin])));
        for (name, by) in touched {
            let known = all.entry(name.clone()).or_default();
            for plugin in by {
                if !known.contains(&plugin) {
                    known.push(plugin);
                }
            }
        }
    }
    all
}

/// Returns the part of an entry that decides what is done for it.
fn decides<'a>(at: &str, entry: &'a Value) -> Cow<'a, Value> {
    if at != "/provider" || !entry.is_object() {
        return Cow::Borrowed(entry);
    }
    let mut entry = entry.clone();
    if let Value::Object(fields) = &mut entry {
        fields.retain(|key, _| !PROVIDER_LABELS.contains(&key.as_str()));
        if let Some(Value::Object(models)) = fields.get_mut("models") {
            for model in models.values_mut().filter_map(Value::as_object_mut) {
                model.retain(|key, _| !MODEL_LABELS.contains(&key.as_str()));
            }
        }
    }
    Cow::Owned(entry)
}

/// Returns the entries of an object by their keys, or the items of a list by their texts.
fn entries(value: Option<&Value>) -> BTreeMap<String, &Value> {
    match value {
        Some(Value::Object(fields)) => fields.iter().map(|(key, it)| (key.clone(), it)).collect(),
        Some(Value::Array(items)) => {
            let name = |item: &Value| match item {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            items.iter().map(|item| (name(item), item)).collect()
        }
        _ => BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The calls of these plugins, each with what it leaves; the configuration is empty before.
    fn steps(left: &[(usize, Value)]) -> Vec<Arc<ConfigStep>> {
        let mut before = json!({});
        let step = |(plugin, after): &(usize, Value)| {
            let step = ConfigStep {
                plugin: *plugin,
                before: std::mem::replace(&mut before, after.clone()),
                after: after.clone(),
            };
            Arc::new(step)
        };
        left.iter().map(step).collect()
    }

    #[test]
    fn an_entry_is_of_all_who_touched_it_in_the_order_of_the_calls() {
        let evil = json!({ "command": ["evil"] });
        let timed = json!({ "command": ["evil"], "timeout": 9 });
        for (what, left, of_a) in [
            (
                "the one called last stands first in the list of plugins",
                vec![
                    (1, json!({ "mcp": { "a": { "command": ["g"] } } })),
                    (0, json!({ "mcp": { "a": evil } })),
                ],
                vec![1, 0],
            ),
            (
                "a wrapper that sets a time limit on every server",
                vec![
                    (0, json!({ "mcp": { "a": evil } })),
                    (1, json!({ "mcp": { "a": timed } })),
                ],
                vec![0, 1],
            ),
            (
                "another entry",
                vec![
                    (0, json!({ "mcp": { "a": evil } })),
                    (
                        1,
                        json!({ "mcp": { "a": evil, "b": { "command": ["b"] } } }),
                    ),
                ],
                vec![0],
            ),
            (
                "removed and put in again",
                vec![
                    (0, json!({ "mcp": { "a": evil } })),
                    (1, json!({})),
                    (2, json!({ "mcp": { "a": { "command": ["c"] } } })),
                ],
                vec![0, 1, 2],
            ),
            (
                "renamed",
                vec![
                    (0, json!({ "mcp": { "x": evil } })),
                    (1, json!({ "mcp": { "a": evil } })),
                ],
                vec![0, 1],
            ),
            (
                "copied",
                vec![
                    (0, json!({ "mcp": { "x": evil } })),
                    (1, json!({ "mcp": { "x": evil, "a": evil } })),
                ],
                vec![0, 1],
            ),
            ("a list", vec![(0, json!({ "mcp": ["a", "b"] }))], vec![0]),
            ("no object", vec![(0, json!({ "mcp": true }))], vec![]),
        ] {
            let found = authors(&steps(&left), "/mcp")
                .remove("a")
                .unwrap_or_default();
            assert_eq!(found, of_a, "{what}");
        }
    }

    /// Attempt 1347 of docs/bypass/attempts.toml.
    #[test]
    fn a_provider_is_of_those_who_decide_where_its_requests_go_and_with_what() {
        let users = json!({
            "npm": "n", "name": "Mine", "options": { "baseURL": "https://mine.test", "apiKey": "k" },
            "models": { "m": { "name": "M", "limit": { "context": 1 } } },
        });
        let changed = |pointer: &str, value: Value| {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            let mut entry = users.clone();
            entry.pointer_mut(parent).unwrap()[key] = value;
            entry
        };
        let step = |plugin, before: &Value, after: &Value| {
            let config = |entry: &Value| json!({ "provider": { "p": entry } });
            Arc::new(ConfigStep {
                plugin,
                before: config(before),
                after: config(after),
            })
        };
        for (pointer, decides) in [
            ("/options/baseURL", true),
            ("/options/apiKey", true),
            ("/options/headers", true),
            ("/options/timeout", true),
            ("/options/resourceName", true),
            ("/npm", true),
            ("/api", true),
            ("/env", true),
            ("/id", true),
            ("/unknown", true),
            ("/models/m/id", true),
            ("/models/m/provider", true),
            ("/models/m/headers", true),
            ("/models/m/options", true),
            ("/models/m/variants", true),
            ("/models/new", true),
            ("/name", false),
            ("/whitelist", false),
            ("/blacklist", false),
            ("/models/m/name", false),
            ("/models/m/limit", false),
            ("/models/m/cost", false),
        ] {
            let after = changed(pointer, json!("other"));
            let of = authors(&[step(0, &users, &after)], "/provider");
            assert_eq!(of.contains_key("p"), decides, "{pointer}");
        }
        // One changes the address, the other one the label.
        let moved = changed("/options/baseURL", json!("https://theirs.test"));
        let mut labelled = moved.clone();
        labelled["name"] = json!("Theirs");
        let both = [step(0, &users, &moved), step(1, &moved, &labelled)];
        assert_eq!(authors(&both, "/provider")["p"], [0]);
        // Who adds a provider is its author, whatever is in it, and who removes one.
        let labels = json!({ "name": "x" });
        assert_eq!(
            authors(
                &steps(&[(2, json!({ "provider": { "p": labels } }))]),
                "/provider"
            )["p"],
            [2]
        );
        // What a server of MCP or a command has is all of its own.
        let named = [
            (0, json!({ "mcp": { "p": { "name": "a" } } })),
            (1, json!({ "mcp": { "p": { "name": "b" } } })),
        ];
        assert_eq!(authors(&steps(&named), "/mcp")["p"], [0, 1]);
    }

    #[test]
    fn an_item_of_a_list_is_of_the_plugin_that_added_it() {
        let urls = |items: &[&str]| json!({ "skills": { "urls": items } });
        let all = steps(&[
            (0, urls(&["http://evil/"])),
            (1, urls(&["http://evil/", "http://own/"])),
            // Put together anew, and in another order.
            (2, urls(&["http://own/", "http://third/", "http://evil/"])),
            // One changed in its place.
            (3, urls(&["http://own/", "http://third/", "http://evil/x"])),
        ]);
        let of = authors(&all, "/skills/urls");
        let of: Vec<(&str, &[usize])> = of.iter().map(|(it, by)| (&**it, &**by)).collect();
        assert_eq!(
            of,
            [
                ("http://evil/", &[0, 3][..]),
                ("http://evil/x", &[0, 3]),
                ("http://own/", &[1]),
                ("http://third/", &[2]),
            ]
        );
    }
}
