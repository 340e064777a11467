//! `/outrigger/plugin`: our own routes for what OpenCode lacks: the state and cost of plugins, and changes of their
//! state (C7).

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, RequestExt as _, Router};
use outrigger_agent::{Agent, PluginError};
use outrigger_protocol::diagnose::Diagnose;

use outrigger_protocol::message::NamedError;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::access::marks::FromPlugin;
use crate::error::ApiError;

pub(crate) fn routes() -> Router<Agent> {
    Router::new()
        .route("/outrigger/plugin", get(plugins))
        .route("/outrigger/v1/plugin", get(plugins))
        .route("/outrigger/plugin/suspend", post(suspend))
        .route("/outrigger/plugin/resume", post(resume))
        .route("/outrigger/plugin/reload", post(reload))
}

/// Returns every plugin with its stage, breakers and resource usage, the cost of each hook (A1, A8), the feature flags
/// (A12), and which plugins should run (D2).
async fn plugins(State(agent): State<Agent>) -> Json<Value> {
    let flags: Map<String, Value> = agent
        .flags()
        .into_iter()
        .map(|(name, on, origin)| (name, json!({ "on": on, "from": origin.to_string() })))
        .collect();
    Json(
        json!({ "plugins": agent.plugins(), "perf": agent.plugin_perf(), "flags": flags, "snapshot": agent.plugin_snapshot_in_use() }),
    )
}

async fn suspend(State(agent): State<Agent>, request: Request) -> Result<Json<Value>, ApiError> {
    let id = named(request).await?;
    agent.suspend_plugin(&id).await.map_err(failed)?;
    Ok(state(&agent, &id))
}

async fn resume(State(agent): State<Agent>, request: Request) -> Result<Json<Value>, ApiError> {
    let id = named(request).await?;
    agent.resume_plugin(&id).await.map_err(failed)?;
    Ok(state(&agent, &id))
}

/// Continues if the client disconnects: a partial reload must not remain.
async fn reload(State(agent): State<Agent>, request: Request) -> Result<Json<Value>, ApiError> {
    let id = named(request).await?;
    let (with, plugin) = (agent.clone(), id.clone());
    let done = tokio::spawn(async move { with.reload_plugin(&plugin).await }).await;
    done.map_err(|lost| ApiError::internal(lost.to_string()))?
        .map_err(failed)?;
    Ok(state(&agent, &id))
}

/// Returns the named plugin. A plugin must not switch off another one, which may be there to watch it.
async fn named(request: Request) -> Result<String, ApiError> {
    #[derive(Deserialize)]
    struct Named {
        id: String,
    }
    if request.extensions().get::<FromPlugin>().is_some() {
        return Err(ApiError::forbidden(
            "a plugin cannot change the state of plugins",
        ));
    }
    let Json(named) = request
        .extract::<Json<Named>, _>()
        .await
        .map_err(|error| ApiError::bad_payload(error.body_text()))?;
    Ok(named.id)
}

fn state(agent: &Agent, id: &str) -> Json<Value> {
    let plugins = agent.plugins();
    let plugin = plugins.iter().find(|plugin| plugin.id == id);
    Json(
        json!({ "id": id, "state": plugin.map(|it| it.state), "generation": plugin.map(|it| it.generation) }),
    )
}

fn failed(error: PluginError) -> ApiError {
    let mut named = NamedError::new("PluginError", error.to_string());
    if let Some(data) = named.data.as_object_mut() {
        data.insert("code".into(), error.code().into());
        data.insert("hint".into(), error.hint().into());
    }
    ApiError::named(StatusCode::CONFLICT, named)
}
