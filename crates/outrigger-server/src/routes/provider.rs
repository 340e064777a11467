//! Routes for providers and their credentials. Keys are write-only: providers are shown without them.

use std::collections::BTreeMap;

use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use outrigger_agent::{Agent, AgentError, LoginError};
use outrigger_protocol::auth::Credential;
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::id::PluginId;
use outrigger_protocol::message::NamedError;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::author::By;
use crate::access::marks::{FromPlugin, Sender};
use crate::error::ApiError;

pub(crate) fn routes(agent: &Agent) -> Router<Agent> {
    Router::new()
        .route("/auth/{id}", put(set).delete(remove))
        .route("/provider/{id}/oauth/authorize", post(authorize))
        .route("/provider/{id}/oauth/callback", post(callback))
        .route_layer(from_fn_with_state(agent.clone(), of_its_own))
        .route("/provider", get(list))
        .route("/config/providers", get(usable))
        .route("/provider/auth", get(methods))
}

/// Lets a plugin change only the credentials of providers whose authentication it contributes: others belong to the
/// user.
async fn of_its_own(
    State(agent): State<Agent>,
    Path(id): Path<String>,
    request: Request,
    next: Next,
) -> Response {
    if request.extensions().get::<FromPlugin>().is_some() {
        let sender = request.extensions().get::<Sender>();
        let sender = sender.and_then(|sender| sender.0.as_deref());
        let why = match sender {
            Some(plugin) if agent.may_set_credential(plugin, &id) => None,
            Some(plugin) if agent.owns_auth(plugin, &id) => Some(
                "its own login did not store it, and the plugin has no `model = true`".to_owned(),
            ),
            _ => Some(format!("it does not provide the authentication of {id}")),
        };
        if let Some(why) = why {
            return ApiError::forbidden(format!(
                "this plugin cannot change the credential of {id}: {why}"
            ))
            .into_response();
        }
    }
    next.run(request).await
}

/// The body is parsed by hand: an error must not quote the key in it.
async fn set(
    State(agent): State<Agent>,
    Path(id): Path<String>,
    By(by): By,
    body: String,
) -> Result<Json<bool>, ApiError> {
    let credential: Credential = serde_json::from_str(&body).map_err(|_| {
        ApiError::bad_payload(
            "the body is not a credential: {type: \"api\", key}, {type: \"oauth\", refresh, access, expires} or {type: \"wellknown\", key, token}",
        )
    })?;
    agent
        .set_credential(
            &id,
            &credential,
            by.plugin_id().as_ref().map(PluginId::as_str),
        )
        .await
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

/// Returns every known provider; `connected` names those that are usable or have a credential, as in OpenCode.
async fn list(State(agent): State<Agent>) -> Json<Value> {
    agent.providers_ready().await;
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
    agent.providers_ready().await;
    let models = agent.models();
    let providers = models.providers();
    let ids: Vec<&str> = providers.iter().map(|p| p.id.as_str()).collect();
    Json(json!({ "providers": providers, "default": models.preferred(&ids) }))
}

/// Returns the login methods by provider, of plugins and built in.
async fn methods(State(agent): State<Agent>) -> Json<Value> {
    let methods = agent
        .auth_methods()
        .into_iter()
        .map(|(provider, found)| (provider, json!(found.labelled())));
    Json(methods.collect())
}

#[derive(Deserialize)]
struct Begin {
    method: usize,
    inputs: Option<BTreeMap<String, String>>,
}

/// Starts a login; null for a method without a first step, as in OpenCode.
async fn authorize(
    State(agent): State<Agent>,
    Path(id): Path<String>,
    Json(begin): Json<Begin>,
) -> Result<Json<Value>, ApiError> {
    let begun = agent.authorize(&id, begin.method, begin.inputs).await;
    begun
        .map(|begun| Json(json!(begun)))
        .map_err(|error| login_error(&id, &error))
}

#[derive(Deserialize)]
struct Finish {
    #[serde(default)]
    code: Option<String>,
}

/// Completes a login. For `auto` the response comes when the user has finished.
async fn callback(
    State(agent): State<Agent>,
    Path(id): Path<String>,
    Json(finish): Json<Finish>,
) -> Result<Json<bool>, ApiError> {
    let done = agent.finish_login(&id, finish.code).await;
    done.map(|()| Json(true))
        .map_err(|error| login_error(&id, &error))
}

fn login_error(provider: &str, error: &LoginError) -> ApiError {
    let mut data =
        json!({ "providerID": provider, "message": error.to_string(), "code": error.code() });
    if let (LoginError::Answer { field, .. }, Some(map)) = (error, data.as_object_mut()) {
        map.insert("field".into(), json!(field));
    }
    let name = error.name().to_owned();
    ApiError::named(StatusCode::BAD_REQUEST, NamedError { name, data })
}
