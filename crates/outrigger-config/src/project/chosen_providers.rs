//! Providers of models that the user has chosen. An untrusted project can choose only among their models: a token that is in the
//! environment for another purpose (`GITHUB_TOKEN`, `HF_TOKEN`, AWS keys) could otherwise send conversations to a service that
//! the user did not choose.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::LoadOptions;

/// Suffix of variables that are for one model service and nothing else.
const API_KEY: &str = "_API_KEY";
/// A further such variable.
const BEDROCK: (&str, &str) = ("AWS_BEARER_TOKEN_BEDROCK", "amazon-bedrock");
/// Services whose `_API_KEY` is used for more than models.
const OTHER_USES: [&str; 7] = [
    "cloudflare",
    "digitalocean",
    "github",
    "gitlab",
    "heroku",
    "vercel",
    "wandb",
];
/// Providers whose name in variables differs from their id.
const OTHER_NAMES: [(&str, &str); 3] = [
    ("gemini", "google"),
    ("googlegenerative", "google"),
    ("zhipu", "z"),
];

/// The providers that the user has chosen.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChosenProviders {
    /// Configured, logged in to, or with a model that the user's own files name.
    names: BTreeSet<String>,
    /// Services with a key in a variable, in the form of [`plain`].
    services: BTreeSet<String>,
}

impl ChosenProviders {
    /// Creates it from the logins and variables of `options`, and from the merged settings of the user.
    pub(crate) fn new(options: &LoadOptions, users: &Value) -> Self {
        let mut names = options.logins.clone();
        let configured = users.get("provider").and_then(Value::as_object);
        names.extend(configured.into_iter().flat_map(|it| it.keys().cloned()));
        let enabled = users
            .get("enabled_providers")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        names.extend(enabled.map(str::to_owned));
        let models = ["model", "small_model"].map(|key| users.get(key));
        let entries = ["agent", "command", "mode"]
            .into_iter()
            .filter_map(|section| users.get(section)?.as_object());
        let of_entries = entries.flat_map(|it| it.values().map(|entry| entry.get("model")));
        let models = models.into_iter().chain(of_entries).flatten();
        let named = models.filter_map(|model| model.as_str()?.split_once('/'));
        names.extend(named.map(|(provider, _)| provider.to_owned()));
        let is_set = |name: &str| options.env.get(name).is_some_and(|it| !it.is_empty());
        names.extend(is_set(BEDROCK.0).then(|| BEDROCK.1.to_owned()));
        let variables = options.env.keys().filter(|name| is_set(name));
        let services = variables
            .filter_map(|name| Some(plain(name.strip_suffix(API_KEY)?)))
            .filter(|it| !OTHER_USES.contains(&it.as_str()));
        Self {
            names,
            services: services.collect(),
        }
    }

    /// Returns whether a model, `provider/model`, is one of theirs. Values that are not models are not checked here.
    pub(crate) fn have(&self, model: &Value) -> bool {
        let Some((provider, _)) = model.as_str().and_then(|it| it.split_once('/')) else {
            return true;
        };
        let id = plain(provider);
        let mut other = OTHER_NAMES.iter().filter(|(_, known)| *known == id);
        self.names.contains(provider)
            || self.services.contains(&id)
            || other.any(|(name, _)| self.services.contains(*name))
    }
}

/// Normalises a name (`fireworks-ai`, `FIREWORKS`): in lower case, without common suffixes.
fn plain(name: &str) -> String {
    let name: String = name
        .chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect();
    name.strip_suffix("ai").map(str::to_owned).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_provider_is_chosen_by_settings_logins_and_keys_of_its_own() {
        let options = |set: &[&str]| LoadOptions {
            env: set
                .iter()
                .map(|it| ((*it).to_owned(), "k".to_owned()))
                .collect(),
            logins: BTreeSet::from(["acme".to_owned()]),
            ..LoadOptions::default()
        };
        for (set, users, model, chosen) in [
            (&["ANTHROPIC_API_KEY"][..], json!({}), "anthropic/a", true),
            (&["OPENAI_API_KEY"], json!({}), "openai/a", true),
            (&["OPENAI_API_KEY"], json!({}), "openrouter/a", false),
            (&["GEMINI_API_KEY"], json!({}), "google/a", true),
            (
                &["GOOGLE_GENERATIVE_AI_API_KEY"],
                json!({}),
                "google/a",
                true,
            ),
            (&["GOOGLE_API_KEY"], json!({}), "google-vertex/a", false),
            (
                &["TOGETHER_API_KEY", "FIREWORKS_API_KEY"],
                json!({}),
                "togetherai/a/b",
                true,
            ),
            (&["FIREWORKS_API_KEY"], json!({}), "fireworks-ai/a", true),
            (&["ZHIPU_API_KEY"], json!({}), "zai/a", true),
            (&["MOONSHOT_API_KEY"], json!({}), "moonshotai/a", true),
            (
                &["AWS_BEARER_TOKEN_BEDROCK"],
                json!({}),
                "amazon-bedrock/a",
                true,
            ),
            (
                &["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"],
                json!({}),
                "amazon-bedrock/a",
                false,
            ),
            (
                &["GITHUB_TOKEN", "GITHUB_API_KEY"],
                json!({}),
                "github-models/a",
                false,
            ),
            (&["GITHUB_API_KEY"], json!({}), "github/a", false),
            (&["HF_TOKEN"], json!({}), "huggingface/a", false),
            (&["WANDB_API_KEY"], json!({}), "wandb/a", false),
            (&[], json!({}), "anthropic/a", false),
            (&[], json!({}), "acme/a", true),
            (&[], json!({"provider": {"p": {}}}), "p/a", true),
            (&[], json!({"model": "p/a"}), "p/b", true),
            (&[], json!({"small_model": "p/a"}), "p/b", true),
            (&[], json!({"agent": {"x": {"model": "p/a"}}}), "p/b", true),
            (&[], json!({"enabled_providers": ["p"]}), "p/b", true),
            (&[], json!({"disabled_providers": ["p"]}), "p/b", false),
            (&[], json!({}), "no-model", true),
            (&[], json!({}), "{file:./m.txt}/x", false),
        ] {
            let chosen_ones = ChosenProviders::new(&options(set), &users);
            assert_eq!(
                chosen_ones.have(&json!(model)),
                chosen,
                "{set:?} {users} {model}"
            );
        }
        let mut empty = options(&["ANTHROPIC_API_KEY"]);
        empty
            .env
            .insert("ANTHROPIC_API_KEY".to_owned(), String::new());
        let chosen = ChosenProviders::new(&empty, &json!({}));
        assert!(!chosen.have(&json!("anthropic/a")));
    }
}
