//! Routes of providers and their credentials. Keys go in and never out: providers are shown without them.

use axum::extract::{Path, State};
use axum::routing::{get, put};
use axum::{Json, Router};
use outrigger_agent::{Agent, AgentError};
use outrigger_protocol::auth::Credential;
use serde_json::{Value, json};

use crate::error::ApiError;

pub(crate) fn routes() -> Router<Agent> {
    Router::new()
        .route("/auth/{id}", put(set).delete(remove))
        .route("/provider", get(list))
        .route("/config/providers", get(usable))
}

/// The body is read by hand: what is wrong with it must not be told with the key that stands in it.
async fn set(
    State(agent): State<Agent>,
    Path(id): Path<String>,
    body: String,
) -> Result<Json<bool>, ApiError> {
    let credential: Credential = serde_json::from_str(&body).map_err(|_| {
        ApiError::bad_request(
            "the body is no credential: {type: \"api\", key}, {type: \"oauth\", refresh, access, expires} or {type: \"wellknown\", key, token}",
        )
    })?;
    agent
        .set_credential(&id, &credential)
        .map_err(AgentError::from)?;
    Ok(Json(true))
}

async fn remove(
    State(agent): State<Agent>,
    Path(id): Path<String>,
) -> Result<Json<bool>, ApiError> {
    agent.remove_credential(&id).map_err(AgentError::from)?;
    Ok(Json(true))
}

/// Every provider that is known; `connected` names those that can be used or have a credential, as in the reference.
async fn list(State(agent): State<Agent>) -> Json<Value> {
    let models = agent.models();
    let (all, usable) = (models.known(), models.providers());
    let stored = models.credentials().all();
    let connected: Vec<&str> = all
        .iter()
        .map(|p| p.id.as_str())
        .filter(|id| stored.contains_key(*id) || usable.iter().any(|p| p.id == *id))
        .collect();
    let ids: Vec<&str> = all.iter().map(|p| p.id.as_str()).collect();
    Json(json!({ "all": all, "default": models.preferred(&ids), "connected": connected }))
}

async fn usable(State(agent): State<Agent>) -> Json<Value> {
    let models = agent.models();
    let providers = models.providers();
    let ids: Vec<&str> = providers.iter().map(|p| p.id.as_str()).collect();
    Json(json!({ "providers": providers, "default": models.preferred(&ids) }))
}
