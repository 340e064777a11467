//! Routes under `/mcp`, and the resources of MCP servers.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use outrigger_agent::{Agent, AgentError, McpError, McpState, McpStatus};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::access::marks::FromPlugin;
use crate::error::ApiError;

pub(crate) fn routes() -> Router<Agent> {
    Router::new()
        .route("/mcp", get(status).post(add))
        .route("/mcp/{name}/auth", post(start_auth).delete(remove_auth))
        .route("/mcp/{name}/auth/callback", post(finish_auth))
        .route("/mcp/{name}/auth/authenticate", post(authenticate))
        .route("/mcp/{name}/connect", post(connect))
        .route("/mcp/{name}/disconnect", post(disconnect))
        .route("/experimental/resource", get(resources))
}

/// Errors of these routes, in OpenCode's own forms.
struct McpFailure(AgentError);

impl From<AgentError> for McpFailure {
    fn from(error: AgentError) -> Self {
        Self(error)
    }
}

impl IntoResponse for McpFailure {
    fn into_response(self) -> Response {
        match self.0 {
            AgentError::Mcp(McpError::Unknown { server }) => {
                let message = format!("MCP server not found: {server}");
                let body =
                    json!({"_tag": "McpServerNotFoundError", "name": server, "message": message});
                (StatusCode::NOT_FOUND, Json(body)).into_response()
            }
            AgentError::Mcp(error @ McpError::NoOAuth { .. }) => {
                let body = json!({"error": error.to_string()});
                (StatusCode::BAD_REQUEST, Json(body)).into_response()
            }
            AgentError::Mcp(error @ McpError::Config { .. }) => {
                ApiError::bad_payload(error.to_string()).into_response()
            }
            other => ApiError::from(other).into_response(),
        }
    }
}

type McpResult<T> = Result<Json<T>, McpFailure>;

/// Returns one server's state. One that is starting is reported as disabled, since OpenCode has no other word
/// either.
fn wire(status: &McpStatus) -> Value {
    let error = || status.error.clone().unwrap_or_default();
    match status.state {
        McpState::Connected => json!({"status": "connected"}),
        McpState::Disabled | McpState::Starting => json!({"status": "disabled"}),
        McpState::Failed => json!({"status": "failed", "error": error()}),
        McpState::NeedsAuth => json!({"status": "needs_auth"}),
        McpState::NeedsClientRegistration => {
            json!({"status": "needs_client_registration", "error": error()})
        }
    }
}

async fn status(State(agent): State<Agent>) -> Json<Value> {
    Json(all(&agent))
}

fn all(agent: &Agent) -> Value {
    let list = agent.mcp();
    let entries = list
        .iter()
        .map(|status| (status.name.clone(), wire(status)));
    Value::Object(entries.collect::<Map<String, Value>>())
}

#[derive(Deserialize)]
struct Add {
    name: String,
    config: Value,
}

async fn add(State(agent): State<Agent>, Json(body): Json<Add>) -> McpResult<Value> {
    agent.mcp_add(&body.name, &body.config).await?;
    Ok(Json(all(&agent)))
}

async fn start_auth(State(agent): State<Agent>, Path(name): Path<String>) -> McpResult<Value> {
    let begun = agent.mcp_start_auth(&name).await?;
    Ok(Json(json!({
        "authorizationUrl": begun.authorization_url,
        "oauthState": begun.state,
    })))
}

#[derive(Deserialize)]
struct Code {
    code: String,
    /// The issuer of the browser's response (RFC 9207); OpenCode's clients do not send it.
    iss: Option<String>,
}

async fn finish_auth(
    State(agent): State<Agent>,
    Path(name): Path<String>,
    Json(body): Json<Code>,
) -> McpResult<Value> {
    let iss = body.iss.as_deref();
    ended(agent.mcp_finish_auth(&name, &body.code, iss).await)
}

async fn authenticate(State(agent): State<Agent>, Path(name): Path<String>) -> McpResult<Value> {
    ended(agent.mcp_authenticate(&name, |_| {}).await)
}

/// Converts the result of a login: a failure is a state of the server, not of the request (OpenCode's form).
fn ended(status: Result<McpStatus, AgentError>) -> McpResult<Value> {
    match status {
        Ok(status) => Ok(Json(wire(&status))),
        Err(AgentError::Mcp(error @ McpError::Login { .. })) => Ok(Json(
            json!({"status": "failed", "error": error.to_string()}),
        )),
        Err(other) => Err(other.into()),
    }
}

async fn remove_auth(State(agent): State<Agent>, Path(name): Path<String>) -> McpResult<Value> {
    agent.mcp_remove_auth(&name)?;
    Ok(Json(json!({"success": true})))
}

async fn connect(State(agent): State<Agent>, Path(name): Path<String>) -> McpResult<bool> {
    agent.mcp_switch(&name, true).await?;
    Ok(Json(true))
}

async fn disconnect(State(agent): State<Agent>, Path(name): Path<String>) -> McpResult<bool> {
    agent.mcp_switch(&name, false).await?;
    Ok(Json(true))
}

/// Lists the resources of all servers. Each list is a request to a server with the user's login, which a plugin does not cause.
async fn resources(
    State(agent): State<Agent>,
    from_plugin: Option<Extension<FromPlugin>>,
) -> Json<Value> {
    match from_plugin {
        Some(_) => Json(json!({})),
        None => Json(agent.mcp_resources().await),
    }
}
