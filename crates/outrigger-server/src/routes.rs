//! Routes that belong to no session.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use outrigger_agent::Agent;
use outrigger_protocol::event::{CustomEvent, Event};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::ApiError;

pub(crate) fn general() -> Router<Agent> {
    Router::new()
        .route("/global/health", get(health))
        .route("/config", get(config))
        .route("/agent", get(agents))
        .route("/command", get(commands))
        .route("/skill", get(skills))
        .route("/project", get(projects))
        .route("/project/current", get(project))
        .route("/path", get(path))
        .route("/log", post(log))
        .route("/tui/show-toast", post(toast))
        .route("/experimental/tool/ids", get(tool_ids))
}

async fn health() -> Json<Value> {
    Json(json!({ "healthy": true, "version": env!("CARGO_PKG_VERSION") }))
}

/// The merged configuration. Keys and tokens are taken out: a plugin that needs one is granted it, not handed all.
async fn config(State(agent): State<Agent>) -> Json<Value> {
    let mut value = agent.config().redacted();
    if let Some(fields) = value.as_object_mut() {
        fields.shift_remove("plugin_origins");
    }
    Json(value)
}

async fn agents(State(agent): State<Agent>) -> Json<Value> {
    let mut list: Vec<_> = agent.agents().values().collect();
    // Plugins that bring agents say in which order they want them shown.
    list.sort_by(|a, b| {
        a.order
            .unwrap_or(f64::MAX)
            .total_cmp(&b.order.unwrap_or(f64::MAX))
            .then(a.name.cmp(&b.name))
    });
    Json(
        list.into_iter()
            .map(outrigger_agent::AgentInfo::to_wire)
            .collect(),
    )
}

async fn commands(State(agent): State<Agent>) -> Json<Value> {
    let list = agent.commands().values().map(|command| {
        let mut out = json!({ "name": command.name, "template": command.template, "hints": [] });
        let optional = [
            ("description", &command.description),
            ("agent", &command.agent),
            ("model", &command.model),
        ];
        if let Some(fields) = out.as_object_mut() {
            fields.extend(
                optional
                    .into_iter()
                    .filter_map(|(k, v)| Some((k.to_owned(), json!(v.as_ref()?)))),
            );
        }
        out
    });
    Json(list.collect())
}

async fn skills(State(agent): State<Agent>) -> Json<Value> {
    let list = agent.skills().iter().map(|skill| {
        json!({ "name": skill.name, "description": skill.description, "location": skill.location, "content": skill.content })
    });
    Json(list.collect())
}

async fn project(State(agent): State<Agent>) -> Json<Value> {
    Json(json!(agent.project()))
}

async fn projects(State(agent): State<Agent>) -> Json<Value> {
    Json(json!([agent.project()]))
}

async fn path(State(agent): State<Agent>) -> Json<Value> {
    let place = agent.place();
    let folders = agent.folders();
    Json(json!({
        "home": folders.home, "state": folders.data, "config": folders.config.join("opencode"),
        "worktree": place.worktree, "directory": place.directory,
    }))
}

#[derive(Deserialize)]
struct LogLine {
    service: String,
    level: String,
    message: String,
    #[serde(default)]
    extra: Value,
}

async fn log(Json(line): Json<LogLine>) -> Result<Json<bool>, ApiError> {
    let LogLine {
        service,
        level,
        message,
        extra,
    } = line;
    let extra = if extra.is_null() {
        String::new()
    } else {
        format!(" {extra}")
    };
    match level.as_str() {
        "error" => tracing::error!("[{service}] {message}{extra}"),
        "warn" => tracing::warn!("[{service}] {message}{extra}"),
        "info" => tracing::info!("[{service}] {message}{extra}"),
        "debug" => tracing::debug!("[{service}] {message}{extra}"),
        other => {
            return Err(ApiError::bad_request(format!(
                "`{other}` is no log level: debug, info, warn or error"
            )));
        }
    }
    Ok(Json(true))
}

/// A toast is an event for whoever has a screen.
async fn toast(
    State(agent): State<Agent>,
    Json(body): Json<Value>,
) -> Result<Json<bool>, ApiError> {
    let properties = body.as_object().cloned().unwrap_or_default();
    agent
        .publish(Event::Custom(CustomEvent {
            kind: "tui.toast.show".into(),
            properties,
        }))
        .await?;
    Ok(Json(true))
}

async fn tool_ids(State(agent): State<Agent>) -> Json<Vec<String>> {
    Json(agent.tool_names())
}
