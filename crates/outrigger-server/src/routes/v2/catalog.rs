//! The part of OpenCode's second API (`/api/...`) that its terminal interface requests at its start and after a catalog
//! change: lists of agents, models, providers, commands and skills. Nothing can be changed through it here. It is not
//! part of the documented v1 API, and the rest of it answers 404 (docs/compatibility.md).
//!
//! Every list comes with its location: `{location, data}`.

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use outrigger_agent::{Agent, AgentInfo};
use outrigger_protocol::model::{Modalities, ModelInfo, ProviderInfo};
use serde_json::{Map, Value, json};

pub(crate) fn routes() -> Router<Agent> {
    Router::new()
        .route("/api/location", get(location))
        .route("/api/agent", get(agents))
        .route("/api/model", get(models))
        .route("/api/provider", get(providers))
        .route("/api/integration", get(integrations))
        .route("/api/reference", get(references))
        .route("/api/command", get(commands))
        .route("/api/skill", get(skills))
}

/// Returns the folder of the request and its project.
fn location_of(agent: &Agent) -> Value {
    let location = agent.location();
    let project = json!({ "id": agent.project().id, "directory": location.worktree });
    json!({ "directory": location.directory, "project": project })
}

pub(super) fn listed(agent: &Agent, data: Vec<Value>) -> Json<Value> {
    Json(json!({ "location": location_of(agent), "data": data }))
}

/// Creates an object of these fields, omitting nulls.
fn present(fields: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(fields.map(|(key, value)| (key.to_owned(), value)).collect())
}

/// No headers or body fields of our own are sent to the model beyond the provider's settings.
fn nothing_more() -> Value {
    json!({ "headers": {}, "body": {} })
}

async fn location(State(agent): State<Agent>) -> Json<Value> {
    Json(location_of(&agent))
}

async fn agents(State(agent): State<Agent>) -> Json<Value> {
    let list = agent.agents().values().map(agent_form).collect();
    listed(&agent, list)
}

fn agent_form(info: &AgentInfo) -> Value {
    let rules = info.permission.iter().map(|rule| {
        json!({ "action": rule.permission, "resource": rule.pattern, "effect": rule.action })
    });
    present([
        ("id", json!(info.name)),
        ("request", nothing_more()),
        ("system", json!(info.prompt)),
        ("description", json!(info.description)),
        ("mode", json!(info.mode)),
        ("hidden", json!(info.hidden)),
        ("permissions", rules.collect()),
    ])
}

async fn models(State(agent): State<Agent>) -> Json<Value> {
    let providers = agent.models().providers();
    let all = providers.iter().flat_map(|provider| {
        provider
            .models
            .values()
            .filter_map(|info| Some(model_form(provider, &as_model(info)?)))
    });
    listed(&agent, all.collect())
}

fn as_model(info: &Value) -> Option<ModelInfo> {
    serde_json::from_value(info.clone()).ok()
}

fn model_form(provider: &ProviderInfo, info: &ModelInfo) -> Value {
    let mut api = reached(provider, Some(&info.api.npm), Some(&info.api.url));
    api.insert("id".into(), json!(info.api.id));
    let kinds = |of: Modalities| -> Value {
        [
            ("text", of.text),
            ("audio", of.audio),
            ("image", of.image),
            ("video", of.video),
            ("pdf", of.pdf),
        ]
        .into_iter()
        .filter(|(_, on)| *on)
        .map(|(kind, _)| json!(kind))
        .collect()
    };
    let capabilities = json!({
        "tools": info.capabilities.toolcall,
        "input": kinds(info.capabilities.input),
        "output": kinds(info.capabilities.output),
    });
    let variants = info.variants.keys().map(|id| json!({ "id": id }));
    present([
        ("id", json!(info.id)),
        ("providerID", json!(info.provider_id)),
        (
            "family",
            Some(&info.family)
                .filter(|f| !f.is_empty())
                .map_or(Value::Null, |f| json!(f)),
        ),
        ("name", json!(info.name)),
        ("api", Value::Object(api)),
        ("capabilities", capabilities),
        ("request", nothing_more()),
        ("variants", variants.collect()),
        ("time", json!({ "released": released(&info.release_date) })),
        ("cost", json!([info.cost])),
        ("status", json!(info.status)),
        ("enabled", json!(true)),
        ("limit", json!(info.limit)),
    ])
}

/// Converts a date `YYYY-MM-DD` to milliseconds since 1970; 0 if there is none.
fn released(date: &str) -> i64 {
    let day: Option<jiff::civil::Date> = date.parse().ok();
    day.and_then(|day| day.to_zoned(jiff::tz::TimeZone::UTC).ok())
        .map_or(0, |at| at.timestamp().as_millisecond())
}

/// Returns how to connect to a provider. Keys are not shown (invariant 10), so there are no settings here.
fn reached(provider: &ProviderInfo, npm: Option<&str>, url: Option<&str>) -> Map<String, Value> {
    let configured = provider.options.get("baseURL").and_then(Value::as_str);
    let url = url
        .filter(|url| !url.is_empty())
        .or(configured)
        .unwrap_or_default();
    let npm = npm
        .filter(|npm| !npm.is_empty())
        .unwrap_or("@ai-sdk/openai-compatible");
    let fields = [("type", "aisdk"), ("package", npm), ("url", url)];
    fields
        .into_iter()
        .map(|(key, value)| (key.to_owned(), json!(value)))
        .collect()
}

async fn providers(State(agent): State<Agent>) -> Json<Value> {
    let providers = agent.models().providers();
    let list = providers.iter().map(|provider| {
        let first = provider.models.values().next().and_then(as_model);
        let api = first.map(|model| model.api).unwrap_or_default();
        let api = reached(provider, Some(&api.npm), Some(&api.url));
        json!({ "id": provider.id, "name": provider.name, "api": api, "request": nothing_more() })
    });
    listed(&agent, list.collect())
}

/// Returns the ways to get a provider's key: typed in, or from the environment.
async fn integrations(State(agent): State<Agent>) -> Json<Value> {
    let providers = agent.models().providers();
    let list = providers.iter().map(|provider| {
        let mut methods = vec![json!({ "type": "key" })];
        if !provider.env.is_empty() {
            methods.push(json!({ "type": "env", "names": provider.env }));
        }
        json!({ "id": provider.id, "name": provider.name, "methods": methods, "connections": [] })
    });
    listed(&agent, list.collect())
}

/// Returns other folders that a configuration refers to: none here.
async fn references(State(agent): State<Agent>) -> Json<Value> {
    listed(&agent, Vec::new())
}

async fn commands(State(agent): State<Agent>) -> Json<Value> {
    let own = |command: &&outrigger_agent::CommandInfo| command.source.word() == "command";
    let list = agent.commands().values().filter(own).map(|command| {
        present([
            ("name", json!(command.name)),
            ("template", json!(command.template)),
            ("description", json!(command.description)),
            ("agent", json!(command.agent)),
        ])
    });
    listed(&agent, list.collect())
}

async fn skills(State(agent): State<Agent>) -> Json<Value> {
    let list = agent.skills().iter().map(|skill| {
        json!({ "name": skill.name, "description": skill.description, "location": skill.location, "content": skill.content })
    });
    listed(&agent, list.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_given_in_milliseconds() {
        let table = [
            ("1970-01-02", 86_400_000),
            ("2025-10-15", 1_760_486_400_000),
            ("", 0),
            ("soon", 0),
        ];
        for (date, expected) in table {
            assert_eq!(released(date), expected, "{date}");
        }
    }

    #[test]
    fn a_model_is_shown_without_its_key() {
        let provider = ProviderInfo {
            id: "mock".into(),
            options: json!({ "baseURL": "http://127.0.0.1:1/v1", "apiKey": "sk-secret" })
                .as_object()
                .cloned()
                .unwrap_or_default(),
            ..ProviderInfo::default()
        };
        let model = ModelInfo {
            id: "m1".into(),
            provider_id: "mock".into(),
            status: "active".into(),
            ..ModelInfo::default()
        };
        let form = model_form(&provider, &model).to_string();
        assert!(!form.contains("sk-secret"), "{form}");
        insta::assert_snapshot!(form, @r#"{"id":"m1","providerID":"mock","name":"","api":{"type":"aisdk","package":"@ai-sdk/openai-compatible","url":"http://127.0.0.1:1/v1","id":""},"capabilities":{"tools":false,"input":[],"output":[]},"request":{"headers":{},"body":{}},"variants":[],"time":{"released":0},"cost":[{"input":0.0,"output":0.0,"cache":{"read":0.0,"write":0.0}}],"status":"active","enabled":true,"limit":{"context":0,"output":0}}"#);
    }
}
