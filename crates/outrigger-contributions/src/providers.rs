//! Model providers of plugins: whose URLs and protocols they change, and through which proxy they are requested.

use std::collections::{BTreeMap, BTreeSet};

use outrigger_plugins::{Grant, Plugins};
use outrigger_protocol::id::PluginId;
use outrigger_protocol::model::PLACE_OPTIONS;
use outrigger_sandbox::SandboxOverrides;
use serde_json::{Map, Value};

/// Returns the proxies of the model providers whose URLs plugins contributed.
#[must_use]
pub fn providers(
    all: &Map<String, Value>,
    sandboxes: &SandboxOverrides,
) -> BTreeMap<String, String> {
    let proxy = |id: &String| {
        Some((
            id.clone(),
            sandboxes.of(&format!("provider:{id}"))?.proxy()?,
        ))
    };
    all.keys().filter_map(proxy).collect()
}

/// Returns values of a `provider` hook's models at this key that none of the models in `before` has.
#[must_use]
pub fn new_in_models<'a>(
    place: &str,
    before: &Value,
    models: &'a Map<String, Value>,
) -> Vec<&'a str> {
    let at = |model: &'a Value| model.pointer(place)?.as_str();
    let known: BTreeSet<&str> = before
        .get("models")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::values)
        .filter_map(|it| it.pointer(place)?.as_str())
        .collect();
    let named: BTreeSet<&str> = models.values().filter_map(at).collect();
    let new = |text: &&str| !text.trim().is_empty() && !known.contains(text);
    named.into_iter().filter(new).collect()
}

/// Returns whether models of a `provider` hook use another destination or protocol than those in `before`.
#[must_use]
pub fn says_where(before: &Value, models: &Map<String, Value>) -> bool {
    ["/api/url", "/api/npm"]
        .iter()
        .any(|place| !new_in_models(place, before, models).is_empty())
}

/// Returns the providers whose URLs or protocol `config` hooks changed, each with the plugin that speaks for it: of several who changed it
/// one without the grant `model`, else the last.
#[must_use]
pub fn speakers(plugins: &Plugins, before: &Value, after: &Value) -> Vec<(String, PluginId)> {
    let entries = after
        .get("provider")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let known = |name: &str| before.get("provider")?.get(name);
    let said = |entry: &Value| -> Vec<String> {
        places(entry).into_iter().chain(protocols(entry)).collect()
    };
    entries
        .filter(|(name, entry)| said(entry) != known(name).map_or(Vec::new(), said))
        .filter_map(|(name, _)| {
            let mut by = plugins.configured_by("provider", name);
            let lacks = |it: &PluginId| plugins.grant_missing(it, Grant::Model).is_some();
            let lacking = by.iter().find(|it| lacks(it)).cloned();
            Some((name.clone(), lacking.or_else(|| by.pop())?))
        })
        .collect()
}

/// Returns whether an entry names a destination: URLs, or names of a location in a cloud.
#[must_use]
pub fn names_place(entry: &Value) -> bool {
    !places(entry).is_empty()
}

/// Returns the destination settings of an entry: URLs, and names of a location in a cloud.
pub(crate) fn places(entry: &Value) -> Vec<String> {
    let options = entry.get("options");
    let named = PLACE_OPTIONS.iter().filter_map(|key| {
        let value = options?.get(*key)?;
        Some(format!("{key} {value}"))
    });
    addresses(entry)
        .into_iter()
        .map(str::to_owned)
        .chain(named)
        .collect()
}

/// Returns the packages that determine a provider's protocol.
fn protocols(entry: &Value) -> Vec<String> {
    let Value::Object(fields) = entry else {
        return Vec::new();
    };
    fields
        .get("npm")
        .map(Value::to_string)
        .into_iter()
        .chain(fields.values().flat_map(protocols))
        .collect()
}

/// Returns the URLs in an entry.
fn addresses(entry: &Value) -> Vec<&str> {
    match entry {
        Value::String(text) => {
            // As parsed when it is requested.
            let text = text.trim();
            let is = |scheme: &str| {
                text.get(..scheme.len())
                    .is_some_and(|it| it.eq_ignore_ascii_case(scheme))
            };
            let found = is("http://") || is("https://");
            found.then_some(text).into_iter().collect()
        }
        Value::Array(items) => items.iter().flat_map(addresses).collect(),
        Value::Object(fields) => fields.values().flat_map(addresses).collect(),
        _ => Vec::new(),
    }
}
