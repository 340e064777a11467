//! The options of a session: the mode, which is an agent, the model, and its reasoning effort.

use std::collections::BTreeMap;

use outrigger_client::{ClientError, Connection};
use outrigger_protocol::message::ModelRef;
use outrigger_protocol::session::Session;
use serde_json::{Value, json};

/// Identifiers of the options, which are OpenCode's.
pub(crate) const MODE: &str = "mode";
pub(crate) const MODEL: &str = "model";
pub(crate) const EFFORT: &str = "effort";
/// The effort if none is chosen.
const DEFAULT: &str = "default";

/// An agent's choices.
#[derive(Debug, Default)]
pub(crate) struct Offer {
    modes: Vec<Mode>,
    models: Vec<Model>,
    /// `provider/model` of the configuration.
    default_model: Option<String>,
}

#[derive(Debug)]
struct Mode {
    name: String,
    description: Option<String>,
    model: Option<String>,
}

#[derive(Debug)]
struct Model {
    /// `provider/model`.
    id: String,
    name: String,
    context: Option<u64>,
    variants: Vec<String>,
}

/// The choices made in a session; `None`: the agent decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) mode: Option<String>,
    pub(crate) model: Option<ModelRef>,
    pub(crate) effort: Option<String>,
}

impl Chosen {
    /// Returns what was last used in a session.
    pub(crate) fn of(session: &Session) -> Self {
        let model = session.model.as_ref();
        Self {
            // A subagent's is none that the user has chosen.
            mode: session
                .agent
                .clone()
                .filter(|_| session.parent_id.is_none()),
            model: model.map(|it| ModelRef {
                provider_id: it.provider_id.clone(),
                model_id: it.id.clone(),
                variant: None,
            }),
            effort: model
                .and_then(|it| it.variant.clone())
                .filter(|it| it != DEFAULT),
        }
    }
}

impl Offer {
    /// Requests them from the agent.
    ///
    /// # Errors
    /// Those of its routes.
    pub(crate) async fn ask(connection: &Connection) -> Result<Self, ClientError> {
        let agents: Value = connection.get("/agent").await?;
        let providers: Value = connection.get("/config/providers").await?;
        let config: Value = connection.get("/config").await?;
        Ok(Self::read(&agents, &providers, &config))
    }

    fn read(agents: &Value, providers: &Value, config: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let modes = list(agents)
            .into_iter()
            .filter(|it| it["mode"] != "subagent" && it["hidden"] != true);
        let mut models = Vec::new();
        for provider in list(&providers["providers"]) {
            let id = provider["id"].as_str().unwrap_or_default();
            let named = provider["name"].as_str().unwrap_or(id);
            for (name, model) in provider["models"].as_object().into_iter().flatten() {
                let variants = model["variants"].as_object();
                models.push(Model {
                    id: format!("{id}/{name}"),
                    name: format!("{named}/{}", model["name"].as_str().unwrap_or(name)),
                    context: model["limit"]["context"].as_u64().filter(|it| *it > 0),
                    variants: variants.map_or_else(Vec::new, |it| it.keys().cloned().collect()),
                });
            }
        }
        let preferred = providers["default"].as_object().and_then(|it| {
            let (provider, model) = it.iter().next()?;
            Some(format!("{provider}/{}", model.as_str()?))
        });
        Self {
            modes: modes
                .filter_map(|it| {
                    Some(Mode {
                        name: text(&it["name"])?,
                        description: text(&it["description"]),
                        model: it["model"]["modelID"].as_str().map(|model| {
                            format!(
                                "{}/{model}",
                                it["model"]["providerID"].as_str().unwrap_or("")
                            )
                        }),
                    })
                })
                .collect(),
            models,
            default_model: text(&config["model"]).or(preferred),
        }
    }

    /// Returns the context size of each model in tokens, by `provider/model`.
    pub(crate) fn contexts(&self) -> BTreeMap<String, u64> {
        self.models
            .iter()
            .filter_map(|it| Some((it.id.clone(), it.context?)))
            .collect()
    }

    /// Returns the mode of a session.
    pub(crate) fn mode(&self, chosen: &Chosen) -> String {
        let of = chosen.mode.as_ref().filter(|it| self.has_mode(it));
        let first = || self.modes.first().map(|it| it.name.clone());
        of.cloned().or_else(first).unwrap_or_default()
    }

    fn model(&self, chosen: &Chosen) -> Option<&Model> {
        let find = |id: &str| self.models.iter().find(|it| it.id == id);
        let mode = self.mode(chosen);
        let of_mode = self.modes.iter().find(|it| it.name == mode);
        chosen
            .model
            .as_ref()
            .map(id_of)
            .as_deref()
            .and_then(find)
            .or_else(|| of_mode?.model.as_deref().and_then(find))
            .or_else(|| self.default_model.as_deref().and_then(find))
            .or(self.models.first())
    }

    pub(crate) fn has_mode(&self, name: &str) -> bool {
        self.modes.iter().any(|it| it.name == name)
    }

    /// Makes a choice; returns `false` for a value that is not offered.
    pub(crate) fn choose(&self, chosen: &mut Chosen, option: &str, value: &str) -> bool {
        match option {
            MODE if self.has_mode(value) => chosen.mode = Some(value.to_owned()),
            MODEL if self.models.iter().any(|it| it.id == value) => {
                chosen.model = ModelRef::parse(value);
                chosen.effort = None;
            }
            EFFORT if value == DEFAULT => chosen.effort = None,
            EFFORT if self.has_effort(chosen, value) => {
                chosen.effort = Some(value.to_owned());
            }
            _ => return false,
        }
        true
    }

    fn has_effort(&self, chosen: &Chosen, value: &str) -> bool {
        let model = self.model(chosen);
        model.is_some_and(|it| it.variants.iter().any(|it| it == value))
    }

    /// Returns the modes in the older form.
    pub(crate) fn modes(&self, chosen: &Chosen) -> Value {
        let modes = self.modes.iter().map(|mode| {
            let mut shown = json!({ "id": mode.name, "name": mode.name });
            if let Some(description) = &mode.description {
                shown["description"] = json!(description);
            }
            shown
        });
        json!({ "currentModeId": self.mode(chosen), "availableModes": modes.collect::<Vec<_>>() })
    }

    /// Returns the models in the older form.
    pub(crate) fn models(&self, chosen: &Chosen) -> Option<Value> {
        let current = &self.model(chosen)?.id;
        let models = self
            .models
            .iter()
            .map(|it| json!({ "modelId": it.id, "name": it.name }));
        Some(json!({ "currentModelId": current, "availableModels": models.collect::<Vec<_>>() }))
    }

    /// Returns all options.
    pub(crate) fn options(&self, chosen: &Chosen) -> Value {
        let select = |id: &str, name: &str, category: &str, current: &str, options: Vec<Value>| {
            json!({
                "id": id, "name": name, "category": category, "type": "select",
                "currentValue": current, "options": options,
            })
        };
        let mut all = Vec::new();
        if let Some(model) = self.model(chosen) {
            let models = self
                .models
                .iter()
                .map(|it| json!({ "value": it.id, "name": it.name }));
            all.push(select(MODEL, "Model", "model", &model.id, models.collect()));
            if !model.variants.is_empty() {
                let values = model
                    .variants
                    .iter()
                    .map(String::as_str)
                    .filter(|it| *it != DEFAULT)
                    .chain([DEFAULT])
                    .map(|it| json!({ "value": it, "name": it }));
                let current = chosen.effort.as_deref().unwrap_or(DEFAULT);
                all.push(select(
                    EFFORT,
                    "Effort",
                    "thought_level",
                    current,
                    values.collect(),
                ));
            }
        }
        let modes = self.modes.iter().map(|mode| {
            let mut shown = json!({ "value": mode.name, "name": mode.name });
            if let Some(description) = &mode.description {
                shown["description"] = json!(description);
            }
            shown
        });
        if !self.modes.is_empty() {
            all.push(select(
                MODE,
                "Session Mode",
                "mode",
                &self.mode(chosen),
                modes.collect(),
            ));
        }
        Value::Array(all)
    }
}

/// `provider/model`.
pub(crate) fn id_of(model: &ModelRef) -> String {
    format!("{}/{}", model.provider_id, model.model_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer() -> Offer {
        let agents = json!([
            { "name": "build", "mode": "primary", "description": "works" },
            { "name": "plan", "mode": "primary", "model": { "providerID": "p", "modelID": "big" } },
            { "name": "explore", "mode": "subagent" },
            { "name": "title", "mode": "primary", "hidden": true },
        ]);
        let providers = json!({
            "providers": [{ "id": "p", "name": "Provider", "models": {
                "small": { "name": "Small", "limit": { "context": 1000 } },
                "big": { "name": "Big", "variants": { "high": {}, "low": {} } },
            } }],
            "default": { "p": "small" },
        });
        Offer::read(&agents, &providers, &json!({}))
    }

    #[test]
    fn what_can_be_chosen_follows_what_is_chosen() {
        let offer = offer();
        let mut chosen = Chosen::default();
        let values = |chosen: &Chosen| {
            offer
                .options(chosen)
                .as_array()
                .unwrap()
                .iter()
                .map(|it| {
                    let field = |key: &str| it[key].as_str().unwrap().to_owned();
                    format!("{}={}", field("id"), field("currentValue"))
                })
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(values(&chosen), "model=p/small mode=build");
        for (option, value, is_taken, then) in [
            ("mode", "explore", false, "model=p/small mode=build"),
            ("mode", "plan", true, "model=p/big effort=default mode=plan"),
            ("effort", "high", true, "model=p/big effort=high mode=plan"),
            (
                "effort",
                "silly",
                false,
                "model=p/big effort=high mode=plan",
            ),
            ("model", "p/small", true, "model=p/small mode=plan"),
            ("effort", "high", false, "model=p/small mode=plan"),
            ("model", "p/none", false, "model=p/small mode=plan"),
            ("colour", "red", false, "model=p/small mode=plan"),
        ] {
            assert_eq!(
                offer.choose(&mut chosen, option, value),
                is_taken,
                "{option} {value}"
            );
            assert_eq!(values(&chosen), then);
        }
        assert_eq!(
            offer.contexts(),
            BTreeMap::from([("p/small".to_owned(), 1000)])
        );
        insta::assert_snapshot!(offer.modes(&chosen).to_string());
    }
}
