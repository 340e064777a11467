//! `cargo xtask models FILE DAY`: the built-in table of the best known models
//! (`crates/outrigger-models/src/catalog/known.json`), from a copy of the catalog of models.dev (`api.json`, MIT).

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::sh::{read, root};
use crate::{Result, failed, usage};

/// The table.
const TABLE: &str = "crates/outrigger-models/src/catalog/known.json";
/// The included providers: those with an adapter that need only a key or a login.
const PROVIDERS: [&str; 18] = [
    "anthropic",
    "openai",
    "google",
    "openrouter",
    "deepseek",
    "xai",
    "groq",
    "mistral",
    "moonshotai",
    "zai",
    "azure",
    "amazon-bedrock",
    "google-vertex",
    "google-vertex-anthropic",
    "github-copilot",
    "togetherai",
    "cerebras",
    "fireworks-ai",
];
/// Prefixes of the included models of OpenRouter, which has hundreds.
const OF_OPENROUTER: [&str; 9] = [
    "anthropic/",
    "openai/",
    "google/",
    "deepseek/",
    "qwen/qwen3",
    "x-ai/",
    "moonshotai/",
    "z-ai/",
    "mistralai/",
];
/// Maximum number of models of one provider, newest first.
const MAX_MODELS: usize = 90;
/// Kept fields of a provider and of a model.
const OF_PROVIDER: [&str; 4] = ["name", "env", "npm", "api"];
const OF_MODEL: [&str; 12] = [
    "name",
    "family",
    "attachment",
    "reasoning",
    "tool_call",
    "temperature",
    "release_date",
    "modalities",
    "interleaved",
    "limit",
    "cost",
    "provider",
];
const OF_COST: [&str; 4] = ["input", "output", "cache_read", "cache_write"];

/// Writes the table.
pub(crate) fn run(arguments: &[String]) -> Result {
    let (file, day) = match arguments {
        [file, day] => (file, day),
        _ => {
            return usage(
                "models FILE DAY: a copy of https://models.dev/api.json, and the day it is of (2026-01-31)",
            );
        }
    };
    let catalog: Value = serde_json::from_str(&read(Path::new(file))?)
        .map_err(|error| crate::Error::Failed(format!("{file} is not JSON: {error}")))?;
    let mut providers = Map::new();
    for id in PROVIDERS {
        let Some(provider) = catalog.get(id) else {
            return failed(format!("{file} has no provider {id}"));
        };
        let mut entry = kept(provider, &OF_PROVIDER);
        entry.insert("models".to_owned(), models(id, provider).into());
        providers.insert(id.to_owned(), entry.into());
    }
    let path = root().join(TABLE);
    let text = written(day, &providers);
    std::fs::write(&path, &text)
        .map_err(|error| crate::Error::Failed(format!("{}: {error}", path.display())))?;
    println!(
        "{TABLE}: {} providers, {} KB",
        providers.len(),
        text.len() / 1000
    );
    Ok(())
}

/// Formats one model per line, for readable diffs.
fn written(day: &str, providers: &Map<String, Value>) -> String {
    let mut out = format!("{{\"made\":{},\"providers\":{{\n", json!(day));
    for (at, (id, provider)) in providers.iter().enumerate() {
        let mut head = provider.as_object().cloned().unwrap_or_default();
        let models = head.remove("models").unwrap_or_default();
        let head = Value::from(head).to_string();
        let head = head.trim_end_matches('}');
        let lines: Vec<String> = models
            .as_object()
            .into_iter()
            .flatten()
            .map(|(id, model)| format!("  {}:{model}", json!(id)))
            .collect();
        let comma = if at + 1 < providers.len() { "," } else { "" };
        out.push_str(&format!(
            " {}:{head},\"models\":{{\n{}\n }}}}{comma}\n",
            json!(id),
            lines.join(",\n")
        ));
    }
    out.push_str("}}\n");
    out
}

/// Returns the models of a provider that are usable for agents, by name.
fn models(id: &str, provider: &Value) -> Map<String, Value> {
    let all: Vec<(&String, &Value)> = provider
        .get("models")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .collect();
    let is_version = |name: &str| {
        let base = |other: &&String| {
            let rest = name.strip_prefix(other.as_str()).unwrap_or_default();
            let digits =
                |it: &str| it.len() >= 4 && it.chars().all(|c| c.is_ascii_digit() || c == '-');
            rest.starts_with(':') || rest == "-latest" || rest.strip_prefix('-').is_some_and(digits)
        };
        all.iter().any(|(other, _)| base(other))
    };
    let mut found: Vec<(&String, &Value)> = all
        .iter()
        .copied()
        .filter(|(name, model)| {
            let named = id != "openrouter" || OF_OPENROUTER.iter().any(|it| name.starts_with(it));
            named && does_the_work(model) && !is_version(name)
        })
        .collect();
    let released = |model: &Value| {
        model["release_date"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    found.sort_by(|a, b| (released(b.1), a.0).cmp(&(released(a.1), b.0)));
    found.truncate(MAX_MODELS);
    found.sort_by_key(|(name, _)| name.as_str());
    found
        .into_iter()
        .map(|(name, model)| {
            let mut entry = kept(model, &OF_MODEL);
            if let Some(cost) = model.get("cost") {
                entry.insert("cost".to_owned(), kept(cost, &OF_COST).into());
            }
            (name.clone(), entry.into())
        })
        .collect()
}

/// Returns whether it calls tools, writes text, has a price and is not deprecated.
fn does_the_work(model: &Value) -> bool {
    let status = model["status"].as_str().unwrap_or_default();
    let writes = model["modalities"]["output"].as_array();
    model["tool_call"] == true
        && !matches!(status, "deprecated" | "alpha")
        && writes.is_some_and(|kinds| kinds.iter().any(|kind| kind == "text"))
        && model["cost"]["output"].is_number()
        && model["limit"]["output"]
            .as_f64()
            .is_some_and(|limit| limit > 0.0)
}

fn kept(value: &Value, keys: &[&str]) -> Map<String, Value> {
    let of = |key: &&str| Some(((*key).to_owned(), value.get(*key)?.clone()));
    keys.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_holds_what_can_work_once() {
        let model = |extra: Value| {
            let mut model = json!({"tool_call": true, "modalities": {"output": ["text"]}, "limit": {"output": 1},
                "cost": {"input": 1, "output": 2, "tiers": []}, "description": "d"});
            model
                .as_object_mut()
                .unwrap()
                .extend(extra.as_object().cloned().unwrap());
            model
        };
        let provider = json!({"models": {
            "a": model(json!({})), "a-20260101": model(json!({})), "a:free": model(json!({})),
            "old": model(json!({"status": "deprecated"})), "mute": model(json!({"tool_call": false})),
        }});
        let found = models("x", &provider);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["a"]);
        assert_eq!(found["a"]["cost"], json!({"input": 1, "output": 2}));
        assert!(found["a"].get("description").is_none());
        let text = written(
            "2026-01-31",
            json!({"x": {"name": "X", "models": found}})
                .as_object()
                .unwrap(),
        );
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&read["made"], &read["providers"]["x"]["name"]),
            (&json!("2026-01-31"), &json!("X"))
        );
        assert_eq!(read["providers"]["x"]["models"]["a"]["limit"]["output"], 1);
    }
}
