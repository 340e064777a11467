//! Reverts changes by `config` hooks to the user's providers and to options of agents that decide whose account pays, where
//! requests go and what answers them, unless the plugin has the grant `model`.

use outrigger_models::Models;
use outrigger_plugins::{Grant, Plugins};
use outrigger_protocol::Object;
use outrigger_protocol::id::PluginId;
use serde_json::Value;

use crate::model_settings::{hold_agent, hold_provider};

/// Lists of providers. A default model is chosen from them.
const LISTS: [&str; 2] = ["disabled_providers", "enabled_providers"];

/// Reverts the changes in `value` that plugins without the grant made. `given` is the configuration that the plugins saw,
/// without secrets, which are restored. `models` are the models of the user's settings and environment variables.
pub fn hold_settings(
    plugins: &Plugins,
    given: &Value,
    value: &mut Value,
    models: impl Fn() -> Models,
) {
    hold_lists(plugins, given, value);
    for name in changed("agent", given, value) {
        let path = ["agent", &name];
        let Some(by) = lacking(plugins, &path) else {
            continue;
        };
        if let Some(entry) = section(value, "agent").and_then(|it| it.get_mut(&name)) {
            let before = given.get("agent").and_then(|it| it.get(&name));
            warn(&hold_agent(before, entry), path, &by);
        }
    }
    let mut of_files = None;
    for name in changed("provider", given, value) {
        let path = ["provider", &name];
        let Some(by) = lacking(plugins, &path) else {
            continue;
        };
        let models = of_files.get_or_insert_with(&models);
        let before = given.get("provider").and_then(|it| it.get(&name));
        if before.is_none() && !is_users(models, &name) {
            continue;
        }
        let Some(entries) = section(value, "provider") else {
            continue;
        };
        let mut entry = entries.get(&name).cloned();
        let held = hold_provider(before, &mut entry, &|model| models.has_model(&name, model));
        match entry {
            Some(entry) => entries.insert(name.clone(), entry),
            None => entries.shift_remove(&name),
        };
        warn(&held, path, &by);
    }
}

/// Reverts the lists of providers that plugins without the grant changed.
fn hold_lists(plugins: &Plugins, given: &Value, value: &mut Value) {
    for key in LISTS {
        let before = given.get(key);
        if value.get(key) == before {
            continue;
        }
        let Some((plugin, table)) = lacking_for_key(plugins, key) else {
            continue;
        };
        let Value::Object(fields) = &mut *value else {
            return;
        };
        match before {
            Some(before) => drop(fields.insert(key.to_owned(), before.clone())),
            None => drop(fields.shift_remove(key)),
        }
        tracing::warn!(
            "[config] the plugin {plugin} set `{key}`, which decides what answers requests: the change is ignored; `model = true` under \
             [plugins.\"{table}\"] in your own outrigger.toml allows it"
        );
    }
}

/// Returns whether the user has a provider that is not in the configuration, with a credential that no plugin stored.
fn is_users(models: &Models, provider: &str) -> bool {
    let stored = models.credentials().stored(provider);
    stored.is_none_or(|it| it.by.is_none()) && models.is_usable(provider)
}

/// Returns the names of the entries of a section that were changed, added or removed.
fn changed(section: &str, given: &Value, value: &Value) -> Vec<String> {
    let entries = |of: &'_ Value| of.get(section).and_then(Value::as_object).cloned();
    let (before, after) = (entries(given), entries(value));
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    let mut names: Vec<String> = before.keys().chain(after.keys()).cloned().collect();
    names.sort();
    names.dedup();
    names.retain(|name| before.get(name) != after.get(name));
    names
}

/// Returns the entries of a section; makes the section an object first if it is not one.
fn section<'a>(value: &'a mut Value, name: &str) -> Option<&'a mut Object> {
    let section = value.as_object_mut()?.entry(name).or_insert(Value::Null);
    if !section.is_object() {
        *section = Value::Object(Object::new());
    }
    section.as_object_mut()
}

/// Returns a plugin that changed this key of the configuration without the grant `model`, and the table that grants it.
#[must_use]
pub fn lacking_for_key(plugins: &Plugins, key: &str) -> Option<(PluginId, String)> {
    let mut by = plugins.configured_keys(&[key]).into_iter();
    by.find_map(|plugin| {
        let table = plugins.grant_missing(&plugin, Grant::Model)?;
        Some((plugin, table))
    })
}

/// Returns a plugin that changed this place without the grant, and the table that grants it.
fn lacking(plugins: &Plugins, path: &[&str]) -> Option<(PluginId, String)> {
    let by = plugins.all_that_configured(path).into_iter();
    let mut lacking = by.filter_map(|plugin| {
        let table = plugins.grant_missing(&plugin, Grant::Model)?;
        Some((plugin, table))
    });
    lacking.next()
}

fn warn(held: &[String], path: [&str; 2], (plugin, table): &(PluginId, String)) {
    let [section, name] = path;
    for place in held {
        let place = format!("{section}.{name}.{place}");
        let place = place.trim_end_matches('.');
        tracing::warn!(
            "[config] the plugin {plugin} changed `{place}`, which decides whose account pays for requests, \
             where they go or what answers them: the change is ignored; `model = true` under [plugins.\"{table}\"] in your own outrigger.toml allows it"
        );
    }
}
