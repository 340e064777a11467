//! The models of a provider.

use std::collections::BTreeMap;

use outrigger_protocol::Object;
use outrigger_protocol::model::{
    CacheCost, Capabilities, Cost, Limit, Modalities, ModelApi, ModelInfo,
};
use serde_json::{Value, json};

use crate::catalog::{CatalogModel, CatalogProvider};

/// Defaults for all models of a provider.
pub(crate) struct Defaults<'a> {
    pub(crate) provider: &'a str,
    pub(crate) npm: &'a str,
    pub(crate) api: &'a str,
}

/// Returns the catalog's models, without deprecated and alpha ones (those may still be the base of a configured one).
pub(crate) fn catalogued(
    defaults: &Defaults<'_>,
    known: Option<&CatalogProvider>,
) -> BTreeMap<String, ModelInfo> {
    known
        .into_iter()
        .flat_map(|k| &k.models)
        .map(|(id, m)| (id.clone(), from_catalog(defaults, id, m)))
        .collect()
}

/// Returns the models from a plugin's `provider` hook. Missing values get defaults; what is not a model is skipped with a
/// warning.
pub(crate) fn from_plugin(
    defaults: &Defaults<'_>,
    listed: &serde_json::Map<String, Value>,
) -> BTreeMap<String, ModelInfo> {
    let mut out = BTreeMap::new();
    for (id, value) in listed {
        let plain = from_catalog(defaults, id, &CatalogModel::default());
        let (Value::Object(base), Value::Object(given)) = (json!(plain), value.clone()) else {
            tracing::warn!(
                "[models] {}: model {id} of a plugin is not an object",
                defaults.provider
            );
            continue;
        };
        match serde_json::from_value::<ModelInfo>(super::build::merged(base, given).into()) {
            Ok(model) => {
                let mut model = ModelInfo {
                    id: id.clone(),
                    provider_id: defaults.provider.to_owned(),
                    ..model
                };
                // The placeholders that it was shown for another provider's secrets.
                model.headers.retain(|_, it| *it != crate::secret::REMOVED);
                out.insert(id.clone(), model);
            }
            Err(error) => tracing::warn!(
                "[models] {}: model {id} of a plugin is skipped: {error}",
                defaults.provider
            ),
        }
    }
    out
}

/// Returns all models: those given and the configured ones, without deprecated and alpha ones that are not configured and
/// without those excluded by `whitelist` and `blacklist`.
pub(crate) fn models(
    defaults: &Defaults<'_>,
    entry: Option<&Object>,
    given: BTreeMap<String, ModelInfo>,
) -> BTreeMap<String, ModelInfo> {
    let mut out = given.clone();
    out.retain(|_, m| !matches!(m.status.as_str(), "deprecated" | "alpha"));
    let configured = entry
        .and_then(|e| e.get("models"))
        .and_then(Value::as_object);
    for (id, value) in configured.into_iter().flatten() {
        let base_id = value.get("id").and_then(Value::as_str).unwrap_or(id);
        let base = given.get(base_id).cloned();
        out.insert(id.clone(), from_config(defaults, id, value, base));
    }
    let list = |key: &str| -> Option<Vec<&str>> {
        let items = entry?.get(key)?.as_array()?;
        Some(items.iter().filter_map(Value::as_str).collect())
    };
    let (white, black) = (list("whitelist"), list("blacklist"));
    out.retain(|id, _| {
        white.as_ref().is_none_or(|l| l.contains(&id.as_str()))
            && black.as_ref().is_none_or(|l| !l.contains(&id.as_str()))
    });
    out
}

fn modalities(names: Option<&Vec<String>>) -> Modalities {
    let has = |name: &str| names.is_some_and(|n| n.iter().any(|x| x == name));
    Modalities {
        text: has("text"),
        audio: has("audio"),
        image: has("image"),
        video: has("video"),
        pdf: has("pdf"),
    }
}

fn tokens(value: Option<f64>) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "token counts are far below 2^53 and not negative"
    )]
    value.map_or(0, |v| v.max(0.0) as u64)
}

// `interleaved: "field"` is short for `{field}`.
fn interleaved(value: Option<&Value>) -> Option<Value> {
    match value? {
        Value::Null => None,
        Value::String(field) => Some(json!({"field": field})),
        other => Some(other.clone()),
    }
}

pub(crate) fn from_catalog(defaults: &Defaults<'_>, id: &str, model: &CatalogModel) -> ModelInfo {
    let limit = model.limit.unwrap_or_default();
    let cost = model.cost.unwrap_or_default();
    let api = model.provider.as_ref();
    let kinds = model.modalities.as_ref();
    let mut out = ModelInfo {
        id: id.to_owned(),
        provider_id: defaults.provider.to_owned(),
        api: ModelApi {
            id: model.id.clone().unwrap_or_else(|| id.to_owned()),
            url: api
                .and_then(|a| a.api.clone())
                .unwrap_or_else(|| defaults.api.to_owned()),
            npm: api
                .and_then(|a| a.npm.clone())
                .unwrap_or_else(|| defaults.npm.to_owned()),
        },
        name: model.name.clone().unwrap_or_else(|| id.to_owned()),
        family: model.family.clone().unwrap_or_default(),
        capabilities: Capabilities {
            temperature: model.temperature.unwrap_or(false),
            reasoning: model.reasoning.unwrap_or(false),
            attachment: model.attachment.unwrap_or(false),
            toolcall: model.tool_call.unwrap_or(true),
            input: modalities(kinds.and_then(|m| m.input.as_ref())),
            output: modalities(kinds.and_then(|m| m.output.as_ref())),
            interleaved: interleaved(model.interleaved.as_ref()).unwrap_or(Value::Bool(false)),
        },
        cost: Cost {
            input: cost.input.unwrap_or(0.0),
            output: cost.output.unwrap_or(0.0),
            cache: CacheCost {
                read: cost.cache_read.unwrap_or(0.0),
                write: cost.cache_write.unwrap_or(0.0),
            },
        },
        limit: Limit {
            context: tokens(limit.context),
            input: limit.input.map(|n| tokens(Some(n))),
            output: tokens(limit.output),
        },
        status: model.status.clone().unwrap_or_else(|| "active".to_owned()),
        options: Object::new(),
        headers: Object::new(),
        release_date: model.release_date.clone().unwrap_or_default(),
        variants: Object::new(),
    };
    out.variants = crate::transform::variants(&out);
    out
}

fn from_config(
    defaults: &Defaults<'_>,
    id: &str,
    value: &Value,
    base: Option<ModelInfo>,
) -> ModelInfo {
    let has_base = base.is_some();
    let base_npm = base.as_ref().map(|b| b.api.npm.clone()).unwrap_or_default();
    let base = base.unwrap_or_else(|| undescribed(defaults, id));
    let text = |pointer: &str| {
        value
            .pointer(pointer)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let api_id = text("/id").unwrap_or_else(|| base.api.id.clone());
    let npm = text("/provider/npm").unwrap_or_else(|| {
        if has_base {
            base.api.npm.clone()
        } else {
            defaults.npm.to_owned()
        }
    });
    // DeepSeek's models need their reasoning back, under whatever name they are served (OpenCode's rule).
    let deepseek = !has_base && npm == "@ai-sdk/openai-compatible" && api_id.contains("deepseek");
    let default_interleaved = if deepseek {
        json!({"field": "reasoning_content"})
    } else {
        base.capabilities.interleaved.clone()
    };
    let mut out = ModelInfo {
        id: id.to_owned(),
        provider_id: defaults.provider.to_owned(),
        api: ModelApi {
            id: api_id,
            url: text("/provider/api").unwrap_or(base.api.url),
            npm,
        },
        name: text("/name").unwrap_or_else(|| match value.get("id") {
            Some(_) => id.to_owned(),
            None => base.name.clone(),
        }),
        family: text("/family").unwrap_or(base.family),
        capabilities: configured_capabilities(value, base.capabilities, default_interleaved),
        cost: configured_cost(value, base.cost),
        limit: configured_limit(value, base.limit),
        status: text("/status").unwrap_or(base.status),
        options: object(value.get("options")),
        headers: object(value.get("headers")),
        release_date: text("/release_date").unwrap_or(base.release_date),
        variants: base.variants,
    };
    // Those of the catalog apply if the protocol is the same.
    if !has_base || out.api.npm != base_npm {
        out.variants = crate::transform::variants(&out);
    }
    out.variants = variants(std::mem::take(&mut out.variants), value.get("variants"));
    out
}

/// Returns a model without a description: text input and output.
fn undescribed(defaults: &Defaults<'_>, id: &str) -> ModelInfo {
    let mut model = from_catalog(defaults, id, &CatalogModel::default());
    model.capabilities.input.text = true;
    model.capabilities.output.text = true;
    model
}

fn configured_limit(value: &Value, base: Limit) -> Limit {
    let number = |pointer: &str| value.pointer(pointer).and_then(Value::as_f64);
    Limit {
        context: number("/limit/context").map_or(base.context, |n| tokens(Some(n))),
        input: number("/limit/input").map_or(base.input, |n| Some(tokens(Some(n)))),
        output: number("/limit/output").map_or(base.output, |n| tokens(Some(n))),
    }
}

fn configured_capabilities(
    value: &Value,
    base: Capabilities,
    default_interleaved: Value,
) -> Capabilities {
    let flag =
        |key: &str, default: bool| value.get(key).and_then(Value::as_bool).unwrap_or(default);
    Capabilities {
        temperature: flag("temperature", base.temperature),
        reasoning: flag("reasoning", base.reasoning),
        attachment: flag("attachment", base.attachment),
        toolcall: flag("tool_call", base.toolcall),
        input: configured_modalities(value, "/modalities/input", base.input),
        output: configured_modalities(value, "/modalities/output", base.output),
        interleaved: interleaved(value.get("interleaved")).unwrap_or(default_interleaved),
    }
}

fn configured_cost(value: &Value, base: Cost) -> Cost {
    let number = |pointer: &str| value.pointer(pointer).and_then(Value::as_f64);
    Cost {
        input: number("/cost/input").unwrap_or(base.input),
        output: number("/cost/output").unwrap_or(base.output),
        cache: CacheCost {
            read: number("/cost/cache_read").unwrap_or(base.cache.read),
            write: number("/cost/cache_write").unwrap_or(base.cache.write),
        },
    }
}

fn configured_modalities(value: &Value, pointer: &str, base: Modalities) -> Modalities {
    match value.pointer(pointer).and_then(Value::as_array) {
        None => base,
        Some(names) => {
            let names: Vec<String> = names
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
            modalities(Some(&names))
        }
    }
}

fn object(value: Option<&Value>) -> Object {
    value
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
}

// Configured variants override the model's own. `disabled: true` removes a variant; the key itself is not an option.
fn variants(own: Object, configured: Option<&Value>) -> Object {
    super::build::merged(own, object(configured))
        .into_iter()
        .filter(|(_, v)| v.get("disabled").and_then(Value::as_bool) != Some(true))
        .map(|(name, mut v)| {
            if let Some(map) = v.as_object_mut() {
                map.shift_remove("disabled");
            }
            (name, v)
        })
        .collect()
}
