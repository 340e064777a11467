//! Settings of model requests in the configuration. Some decide whose account pays for a request, where it goes, which model
//! answers it and what it costs: without the grant `model`, a plugin leaves these as they are for the user's providers, and
//! for the requests of all agents. The allowed changes are listed; all others are reverted.
//!
//! Plugins may change addresses and protocols: such a provider loses the user's keys and is reached through the plugin's
//! proxy.

use outrigger_kernel::guard::{is_guarded_header, is_guarded_option};
use outrigger_models::FILES;
use outrigger_protocol::Object;
use outrigger_protocol::model::PLACE_OPTIONS;
use serde_json::Value;

/// Keys that are a model.
const MODELS: [&str; 2] = ["model", "small_model"];
/// Sections whose entries have a `model`.
const SECTIONS: [&str; 3] = ["agent", "command", "mode"];

/// What a plugin may change of a value.
#[derive(Clone, Copy)]
enum Rule {
    Free,
    Held,
    /// Of an object: each entry by its name. The object itself stays one.
    Entries(fn(&str) -> Rule),
    /// The models of a provider.
    Models,
}

/// A provider's entry in the configuration.
fn of_provider(key: &str) -> Rule {
    match key {
        "name" | "whitelist" | "blacklist" | "npm" | "api" => Rule::Free,
        "options" => Rule::Entries(of_provider_option),
        "models" => Rule::Models,
        _ => Rule::Held,
    }
}

fn of_provider_option(key: &str) -> Rule {
    match key {
        "baseURL" | "chunkTimeout" | "includeUsage" | "setCacheKey" | "timeout" => Rule::Free,
        "headers" => Rule::Entries(of_header),
        // Files have a rule of their own.
        _ if PLACE_OPTIONS.contains(&key) || FILES.contains(&key) => Rule::Free,
        _ => Rule::Held,
    }
}

/// A model that exists without the plugin.
fn of_model(key: &str) -> Rule {
    match key {
        "attachment" | "experimental" | "family" | "interleaved" | "limit" | "modalities"
        | "name" | "provider" | "reasoning" | "release_date" | "status" | "temperature"
        | "tool_call" => Rule::Free,
        "headers" => Rule::Entries(of_header),
        "options" => Rule::Entries(of_option),
        "variants" => Rule::Entries(of_variant),
        _ => Rule::Held,
    }
}

/// A model that the plugin adds. It gives it a name of the service and a price, too.
fn of_new_model(key: &str) -> Rule {
    match key {
        "cost" | "id" => Rule::Free,
        _ => of_model(key),
    }
}

/// A model in the form of the `provider` hook.
fn of_listed_model(key: &str) -> Rule {
    match key {
        "api" => Rule::Entries(|key| match key {
            "npm" | "url" => Rule::Free,
            _ => Rule::Held,
        }),
        "capabilities" | "id" | "providerID" => Rule::Free,
        _ => of_model(key),
    }
}

/// One that the plugin adds.
fn of_new_listed_model(key: &str) -> Rule {
    match key {
        "api" | "cost" => Rule::Free,
        _ => of_listed_model(key),
    }
}

fn of_variant(_name: &str) -> Rule {
    Rule::Entries(of_option)
}

fn of_agent(key: &str) -> Rule {
    match key {
        "options" => Rule::Entries(of_option),
        _ => Rule::Free,
    }
}

/// As for `chat.params`.
fn of_option(name: &str) -> Rule {
    held_if(is_guarded_option(name))
}

/// As for `chat.headers`.
fn of_header(name: &str) -> Rule {
    held_if(is_guarded_header(name))
}

fn held_if(is_guarded: bool) -> Rule {
    if is_guarded { Rule::Held } else { Rule::Free }
}

/// Puts back what a plugin without the grant changed in `provider.NAME`, and returns the places, like `options.apiKey`.
/// `is_known`: whether a model exists without the plugin.
pub fn hold_provider(
    before: Option<&Value>,
    entry: &mut Option<Value>,
    is_known: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    let mut holding = Holding::new(is_known);
    *entry = holding.value(Rule::Entries(of_provider), before, entry.take(), "");
    holding.places
}

/// The same for `agent.NAME`: its options become those of requests.
pub fn hold_agent(before: Option<&Value>, entry: &mut Value) -> Vec<String> {
    let mut holding = Holding::new(&|_| true);
    // Something else than an object is no agent.
    if let Value::Object(fields) = entry {
        let known = before.and_then(Value::as_object);
        holding.entries(of_agent, known, fields, "");
    }
    holding.places
}

/// The same for the models that a `provider` hook lists. It may leave models out.
pub fn hold_listed_models(before: &Value, models: &mut Object) -> Vec<String> {
    let known = before.get("models").and_then(Value::as_object);
    let mut holding = Holding::new(&|_| true);
    for (name, model) in models.iter_mut() {
        let before = known.and_then(|it| it.get(name));
        let rule = match before {
            Some(_) => of_listed_model,
            None => of_new_listed_model,
        };
        if let Value::Object(fields) = model {
            holding.entries(rule, before.and_then(Value::as_object), fields, name);
        }
    }
    holding.places
}

/// Puts values back.
struct Holding<'a> {
    is_known: &'a dyn Fn(&str) -> bool,
    /// What was put back.
    places: Vec<String>,
}

impl<'a> Holding<'a> {
    fn new(is_known: &'a dyn Fn(&str) -> bool) -> Self {
        Self {
            is_known,
            places: Vec::new(),
        }
    }

    /// Returns what a value is after the change from `before` to `after`.
    fn value(
        &mut self,
        rule: Rule,
        before: Option<&Value>,
        after: Option<Value>,
        place: &str,
    ) -> Option<Value> {
        if before == after.as_ref() {
            return after;
        }
        let known = before.and_then(Value::as_object);
        match (rule, after) {
            (Rule::Free, after) => after,
            (Rule::Entries(rule), Some(Value::Object(mut fields))) => {
                self.entries(rule, known, &mut fields, place);
                Some(Value::Object(fields))
            }
            (Rule::Models, Some(Value::Object(mut models))) => {
                self.models(known, &mut models, place);
                Some(Value::Object(models))
            }
            (Rule::Held | Rule::Entries(_) | Rule::Models, _) => {
                self.places.push(place.to_owned());
                before.cloned()
            }
        }
    }

    fn entries(
        &mut self,
        rule: fn(&str) -> Rule,
        before: Option<&Object>,
        fields: &mut Object,
        place: &str,
    ) {
        for name in names(before, fields) {
            self.entry(rule(&name), &name, before, fields, place);
        }
    }

    fn models(&mut self, before: Option<&Object>, models: &mut Object, place: &str) {
        for name in names(before, models) {
            let is_known =
                before.is_some_and(|it| it.contains_key(&name)) || (self.is_known)(&name);
            let rule = if is_known { of_model } else { of_new_model };
            self.entry(Rule::Entries(rule), &name, before, models, place);
        }
    }

    fn entry(
        &mut self,
        rule: Rule,
        name: &str,
        before: Option<&Object>,
        fields: &mut Object,
        place: &str,
    ) {
        let place = match place {
            "" => name.to_owned(),
            place => format!("{place}.{name}"),
        };
        let known = before.and_then(|it| it.get(name));
        let now = fields.get_mut(name).map(Value::take);
        match self.value(rule, known, now, &place) {
            Some(value) => fields.insert(name.to_owned(), value),
            None => fields.shift_remove(name),
        };
    }
}

/// Returns the names in either.
fn names(before: Option<&Object>, after: &Object) -> Vec<String> {
    let gone = before
        .into_iter()
        .flat_map(|it| it.keys())
        .filter(|name| !after.contains_key(*name));
    after.keys().chain(gone).cloned().collect()
}

/// Returns the JSON pointers of the models in a configuration, each with its top-level key.
#[must_use]
pub fn model_pointers(value: &Value) -> Vec<(&'static str, String)> {
    let mut found: Vec<_> = MODELS.map(|key| (key, format!("/{key}"))).into();
    for section in SECTIONS {
        let entries = value.get(section).and_then(Value::as_object);
        for name in entries.into_iter().flat_map(|it| it.keys()) {
            let name = name.replace('~', "~0").replace('/', "~1");
            found.push((section, format!("/{section}/{name}/model")));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn held(before: Option<Value>, after: Value) -> (Value, Vec<String>) {
        let mut entry = (!after.is_null()).then_some(after);
        let places = hold_provider(before.as_ref(), &mut entry, &|name| name == "listed");
        (entry.unwrap_or_default(), places)
    }

    #[test]
    fn of_the_users_provider_a_plugin_changes_what_is_listed_alone() {
        let users = json!({
            "npm": "n", "env": ["A"],
            "options": { "apiKey": "k", "headers": { "x-app": "a", "authorization": "u" } },
            "models": { "m": { "id": "real", "cost": { "input": 1 } } },
        });
        let mut theirs = users.clone();
        theirs["name"] = json!("New name");
        theirs["env"] = json!(["B"]);
        theirs["options"] = json!({
            "apiKey": "theirs", "organization": "o", "queryParams": { "key": "q" }, "timeout": 5, "baseURL": "https://x.test",
            "headers": { "x-app": "b", "OpenAI-Organization": "o" },
        });
        theirs["models"] = json!({
            "m": { "cost": {}, "limit": { "output": 5 }, "headers": { "Authorization": "t", "x-a": "1" },
                "options": { "extra_body": {}, "reasoningEffort": "high" }, "variants": { "high": { "extraBody": {}, "effort": 1 } } },
            "listed": { "id": "other", "name": "Listed" },
            "new": { "id": "service-name", "cost": { "input": 0 }, "options": { "model": "other" } },
        });
        let (entry, mut places) = held(Some(users.clone()), theirs);
        places.sort();
        assert_eq!(
            places,
            [
                "env",
                "models.listed.id",
                "models.m.cost",
                "models.m.headers.Authorization",
                "models.m.id",
                "models.m.options.extra_body",
                "models.m.variants.high.extraBody",
                "models.new.options.model",
                "options.apiKey",
                "options.headers.OpenAI-Organization",
                "options.headers.authorization",
                "options.organization",
                "options.queryParams",
            ]
        );
        assert_eq!(
            entry,
            json!({
                "npm": "n", "env": ["A"], "name": "New name",
                "options": { "apiKey": "k", "timeout": 5, "baseURL": "https://x.test",
                    "headers": { "x-app": "b", "authorization": "u" } },
                "models": {
                    "m": { "id": "real", "cost": { "input": 1 }, "limit": { "output": 5 }, "headers": { "x-a": "1" },
                        "options": { "reasoningEffort": "high" }, "variants": { "high": { "effort": 1 } } },
                    "listed": { "name": "Listed" },
                    "new": { "id": "service-name", "cost": { "input": 0 }, "options": {} },
                },
            })
        );
    }

    #[test]
    fn what_is_removed_or_replaced_as_a_whole_is_put_back() {
        let users = json!({ "options": { "apiKey": "k" }, "models": { "m": { "id": "real" } } });
        for after in [
            json!(null),
            json!("x"),
            json!([]),
            json!({}),
            json!({ "options": null, "models": [] }),
            json!({ "options": {}, "models": { "m": "x" } }),
            json!({ "options": { "apiKey": null }, "models": {} }),
        ] {
            let (entry, places) = held(Some(users.clone()), after.clone());
            assert_eq!(entry, users, "{after}");
            assert!(!places.is_empty(), "{after}");
        }
        // An entry for a provider that is in the catalog alone.
        let (entry, places) = held(
            None,
            json!({ "options": { "apiKey": "t" }, "models": { "new": {} } }),
        );
        assert_eq!(entry, json!({ "options": {}, "models": { "new": {} } }));
        assert_eq!(places, ["options.apiKey"]);
    }

    #[test]
    fn an_agents_options_are_as_those_of_a_request() {
        let before = json!({ "options": { "extraBody": { "a": 1 }, "effort": 1 } });
        let mut agent = json!({
            "prompt": "p", "tools": { "x": true }, "model": "a/b",
            "options": { "extra_body": {}, "organization": "o", "effort": 2 },
        });
        let mut places = hold_agent(Some(&before), &mut agent);
        places.sort();
        let want = [
            "options.extraBody",
            "options.extra_body",
            "options.organization",
        ];
        assert_eq!(places, want);
        assert_eq!(
            agent["options"],
            json!({ "effort": 2, "extraBody": { "a": 1 } })
        );
        assert_eq!(agent["prompt"], "p");
    }

    #[test]
    fn a_listed_model_stays_the_one_that_it_was() {
        let before = json!({ "models": { "m": { "api": { "id": "real", "url": "u", "npm": "n" }, "cost": { "input": 1 } } } });
        let mut models = json!({
            "m": { "api": { "id": "other", "url": "v", "npm": "n" }, "cost": { "input": 0 }, "headers": { "authorization": "t" },
                "capabilities": { "reasoning": true } },
            "new": { "api": { "id": "x" }, "options": { "extraBody": {} } },
        });
        let fields = models.as_object_mut().unwrap();
        let mut places = hold_listed_models(&before, fields);
        places.sort();
        let want = [
            "m.api.id",
            "m.cost",
            "m.headers.authorization",
            "new.options.extraBody",
        ];
        assert_eq!(places, want);
        let want = json!({
            "m": { "api": { "id": "real", "url": "v", "npm": "n" }, "cost": { "input": 1 }, "headers": {},
                "capabilities": { "reasoning": true } },
            "new": { "api": { "id": "x" }, "options": {} },
        });
        assert_eq!(models, want);
        // Without an `api`, the model's own.
        let mut models = json!({ "m": {} });
        hold_listed_models(&before, models.as_object_mut().unwrap());
        assert_eq!(models["m"]["api"]["id"], "real");
    }
}
