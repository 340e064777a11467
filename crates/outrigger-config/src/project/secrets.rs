//! User secrets that entries of a project's settings would take along. OpenCode merges the entries of a project over those of the
//! user, by name: one that names another program or URL would get the variables, headers and keys of the user's entry.
//!
//! A changed server, language server or formatter gets none of them. Other user secrets that are sent where the project chooses
//! are listed in the question about the folder with their destination. These are mainly provider keys, since projects
//! legitimately set a provider's URL.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use outrigger_protocol::keys::is_secret_name;
use outrigger_schema::child;
use serde_json::{Map, Value, json};

use crate::ConfigProblem;
use crate::opencode::merge::merge;
use crate::project::TrustRequest;
use crate::redact::is_secret;
use crate::settings::{Profile, Settings};

/// Prefix of [`TrustRequest::what`] for secrets that are sent where the project chooses.
pub(crate) const SENDS: &str = "sends/";
/// Prefix of [`TrustRequest::what`] for a project server that runs unsandboxed by the user's own settings.
pub(crate) const UNCONFINED: &str = "unconfined/";

/// Sections whose entries are merged by name and contain secrets.
const SECTIONS: [&str; 4] = ["formatter", "lsp", "mcp", "provider"];
/// Keys that identify a server.
const IDENTITY: [&str; 4] = ["command", "cwd", "type", "url"];
/// Keys of a server with values that the user provides: variables, headers, logins, and initialisation options of a language
/// server.
const GIVEN: [&str; 5] = ["env", "environment", "headers", "initialization", "oauth"];
/// Keys that do not change what a server does.
const HARMLESS: [&str; 4] = ["disabled", "enabled", "extensions", "timeout"];

/// The user's own values in the sections with secrets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Users(Value);

impl Users {
    /// Adds a document of the user, or of the machine.
    pub(crate) fn add(&mut self, document: &Value) {
        let of = |section: &&str| Some(((*section).to_owned(), document.get(*section)?.clone()));
        let sections: Map<String, Value> = SECTIONS.iter().filter_map(of).collect();
        if self.0.is_null() {
            self.0 = Value::Object(Map::new());
        }
        merge(&mut self.0, Value::Object(sections));
    }

    fn entry(&self, section: &str, name: &str) -> Option<&Value> {
        self.0.get(section)?.get(name)
    }

    /// Removes from the merged document the user's values for servers that the project changed, and returns what it removed.
    pub(crate) fn withhold(&self, merged: &mut Value) -> Vec<ConfigProblem> {
        let mut reported = self.withhold_records(merged);
        for section in SECTIONS.iter().filter(|it| **it != "provider") {
            let users = self.0.get(*section).and_then(Value::as_object);
            for (name, users) in users.into_iter().flatten() {
                let entry = merged.get_mut(*section).and_then(|it| it.get_mut(name));
                let Some(Value::Object(entry)) = entry else {
                    continue;
                };
                let changed = IDENTITY
                    .iter()
                    .find(|key| entry.get(**key) != users.get(**key));
                let Some(changed) = changed else { continue };
                let pointer = child(&child("", section), name);
                let mut taken = Vec::new();
                for key in GIVEN {
                    if let (Some(now), Some(own)) = (entry.get_mut(key), users.get(key))
                        && take(now, own, &child(&pointer, key), &mut taken)
                    {
                        entry.shift_remove(key);
                    }
                }
                if !taken.is_empty() {
                    reported.push(ConfigProblem {
                        file: format!("{section}.{name}"),
                        pointer: None,
                        message: format!(
                            "the project's settings have another `{changed}` for it, so it does not get what yours give it: {}",
                            taken.join(", ")
                        ),
                    });
                }
            }
        }
        reported
    }

    /// Removes from the merged document the files to which a project would record conversations: this program writes them,
    /// without a sandbox.
    fn withhold_records(&self, merged: &mut Value) -> Vec<ConfigProblem> {
        let mut reported = Vec::new();
        let entries = merged.get_mut("provider").and_then(Value::as_object_mut);
        for (name, entry) in entries.into_iter().flatten() {
            let users = self
                .entry("provider", name)
                .and_then(|it| it.pointer("/options/record"));
            let Some(Value::Object(options)) = entry.get_mut("options") else {
                continue;
            };
            if options.get("record").is_some_and(|it| Some(it) != users) {
                options.shift_remove("record");
                reported.push(ConfigProblem {
                    file: format!("provider.{name}"),
                    pointer: Some("options.record".to_owned()),
                    message: "ignored: a project says nothing about files that conversations are recorded into; set it in your own opencode.json".to_owned(),
                });
            }
        }
        reported
    }

    /// Returns which user secrets are sent where these entries of a project choose, and which of its servers run as the user.
    pub(crate) fn asked(
        &self,
        asks: &[TrustRequest],
        settings: &Settings,
        env: &BTreeMap<String, String>,
    ) -> Vec<TrustRequest> {
        let mut all = Vec::new();
        for ask in asks {
            let mut parts = ask.what.trim_start_matches('/').splitn(2, '/');
            let (Some(section), Some(name)) = (parts.next(), parts.next()) else {
                continue;
            };
            if matches!(section, "mcp" | "mcpServers") {
                all.extend(unconfined(ask, name, settings));
            }
            match section {
                "provider" => all.extend(self.of_provider(ask, name, env)),
                section if SECTIONS.contains(&section) => {
                    all.extend(self.of_server(ask, section, name));
                }
                _ => {}
            }
        }
        all
    }

    fn of_provider(
        &self,
        ask: &TrustRequest,
        name: &str,
        env: &BTreeMap<String, String>,
    ) -> Option<TrustRequest> {
        let mut places = BTreeSet::new();
        addresses(&ask.value, &mut places);
        let named: Vec<&str> = ask
            .value
            .get("env")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if places.is_empty() && named.is_empty() {
            return None;
        }
        let has_own_key = ask.value.pointer("/options/apiKey").is_some();
        let mut own = Vec::new();
        if let Some(users) = self.entry("provider", name) {
            secrets(users, &format!("/provider/{name}"), &mut own);
            own.retain(|it| !has_own_key || it != "options.apiKey");
        }
        if has_own_key && own.is_empty() {
            return None;
        }
        let places: Vec<&str> = places.iter().map(String::as_str).collect();
        let place = match places.as_slice() {
            [] => format!("what the provider {name} is"),
            all => all.join(" and "),
        };
        let to = json!({ "to": place, "named": named, "of": own });
        let mut what: Vec<String> = named.iter().map(|it| (*it).to_owned()).collect();
        if named.is_empty() && !has_own_key {
            what.extend(variables(name, &ask.value, env));
        }
        let profile = ask.value.pointer("/options/profile");
        what.extend(
            profile
                .and_then(Value::as_str)
                .map(|it| format!("keys of the profile {it} in ~/.aws")),
        );
        what.extend(own);
        let what = match what.as_slice() {
            [] => format!("key for {name}, if you have one,"),
            all => all.join(", "),
        };
        Some(asked(
            ask,
            SENDS,
            &to,
            format!("sends your {what} to {place}"),
        ))
    }

    /// Returns the request of an unchanged server with other variables, headers or options.
    fn of_server(&self, ask: &TrustRequest, section: &str, name: &str) -> Option<TrustRequest> {
        let users = self.entry(section, name)?;
        let fields = ask.value.as_object()?;
        let is_another = |key: &&str| {
            fields
                .get(*key)
                .is_some_and(|it| Some(it) != users.get(*key))
        };
        let changed: Vec<&str> = fields
            .keys()
            .map(String::as_str)
            .filter(|it| !HARMLESS.contains(it))
            .collect();
        if changed.is_empty() || IDENTITY.iter().any(is_another) {
            return None;
        }
        let mut own = Vec::new();
        for key in GIVEN {
            if let Some(Value::Object(given)) = users.get(key) {
                own.extend(given.keys().cloned());
            }
        }
        if own.is_empty() {
            return None;
        }
        let shown = format!(
            "gives your {} to {section}.{name}, which it changes ({})",
            own.join(", "),
            changed.join(", ")
        );
        Some(asked(
            ask,
            SENDS,
            &json!({ "of": own, "changed": changed }),
            shown,
        ))
    }
}

fn unconfined(ask: &TrustRequest, name: &str, settings: &Settings) -> Option<TrustRequest> {
    let set = settings.tool_execution.mcp.get(name)?.sandbox?;
    // Without a wider setting it has the permissions of a command of the model.
    (set < settings.tools.sandbox).then(|| {
        let shown = match set {
            Profile::Full => {
                format!("{name} runs as you, in no sandbox: `[mcp.{name}]` of your settings")
            }
            _ => format!("{name} may more than commands: `[mcp.{name}]` of your settings"),
        };
        asked(ask, UNCONFINED, &json!({ "sandbox": shown }), shown)
    })
}

fn asked(ask: &TrustRequest, kind: &str, value: &Value, shown: String) -> TrustRequest {
    let what = format!("{kind}{}", ask.what.trim_start_matches('/'));
    let mut asked = TrustRequest::new(Path::new(&ask.file), what, value);
    asked.shown = shown;
    asked
}

/// Removes from `now` what equals the user's value; returns true if nothing is left.
fn take(now: &mut Value, own: &Value, pointer: &str, taken: &mut Vec<String>) -> bool {
    if now == own {
        taken.push(pointer.trim_start_matches('/').replace('/', "."));
        return true;
    }
    let (Value::Object(now), Value::Object(own)) = (now, own) else {
        return false;
    };
    let mut gone = Vec::new();
    for (key, value) in now.iter_mut() {
        if let Some(own) = own.get(key)
            && take(value, own, &child(pointer, key), taken)
        {
            gone.push(key.clone());
        }
    }
    gone.iter().for_each(|key| drop(now.shift_remove(key)));
    now.is_empty()
}

/// Collects the destinations of a provider entry: URLs, or else packages with a built-in one.
fn addresses(entry: &Value, found: &mut BTreeSet<String>) {
    let text = |pointer: &str| entry.pointer(pointer).and_then(Value::as_str);
    let places = [
        "/options/baseURL",
        "/options/endpoint",
        "/options/enterpriseUrl",
        "/api",
    ];
    let mut named: Vec<&str> = places.into_iter().filter_map(text).collect();
    if let Some(resource) = text("/options/resourceName") {
        found.insert(format!("the resource {resource} at Azure"));
    }
    let models = entry.get("models").and_then(Value::as_object);
    for model in models.into_iter().flat_map(|it| it.values()) {
        let of_model = |pointer: &str| model.pointer(pointer).and_then(Value::as_str);
        let pointers = ["/provider/api", "/api/url", "/api"];
        named.extend(pointers.into_iter().filter_map(of_model));
        named.extend(of_model("/provider/npm").filter(|_| of_model("/provider/api").is_none()));
    }
    if named.is_empty() && found.is_empty() {
        named.extend(text("/npm"));
    }
    found.extend(named.into_iter().map(str::to_owned));
}

/// Clouds, by a part of the names of their providers and packages, with the prefix of variables for their keys.
const CLOUDS: [(&str, &str); 3] = [
    ("azure", "AZURE_"),
    ("bedrock", "AWS_"),
    ("vertex", "GOOGLE_"),
];

/// Returns set variables that may contain the key of a provider, by its name, and for a cloud provider those of the cloud.
fn variables<'a>(
    provider: &str,
    entry: &Value,
    env: &'a BTreeMap<String, String>,
) -> impl Iterator<Item = String> + use<'a> {
    let npm = entry.get("npm").and_then(Value::as_str).unwrap_or_default();
    let clouds = CLOUDS
        .iter()
        .filter(|(part, _)| provider.contains(part) || npm.contains(part));
    let mut starts: Vec<String> = clouds.map(|(_, start)| (*start).to_owned()).collect();
    starts.push(provider.to_ascii_uppercase().replace('-', "_"));
    let is_one = move |(name, value): &(&String, &String)| {
        !value.is_empty()
            && starts.iter().any(|start| name.starts_with(start))
            && is_secret_name(name)
    };
    env.iter().filter(is_one).map(|(name, _)| name.clone())
}

/// Collects the names of likely secrets in an entry.
fn secrets(value: &Value, pointer: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                secrets(value, &child(pointer, key), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Array(_) => {}
        _ if is_secret(pointer) => {
            let name = pointer.splitn(4, '/').nth(3).unwrap_or_default();
            found.push(name.replace('/', "."));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
