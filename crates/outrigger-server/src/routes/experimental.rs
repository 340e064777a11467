//! `/experimental`: tools and sessions across projects, and other requests that clients send at their start.

use axum::extract::{Path, Query, State};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use outrigger_agent::Agent;
use outrigger_protocol::Object;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::ModelRef;
use outrigger_store::SessionFilter;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::scope::{Scope, in_scope};
use crate::error::ApiError;

pub(crate) fn routes() -> Router<Agent> {
    Router::new()
        .route("/experimental/tool", get(tools))
        .route("/experimental/tool/ids", get(tool_ids))
        .route("/experimental/session", get(sessions))
        .route("/experimental/session/{id}/background", post(background))
        .route("/experimental/capabilities", get(capabilities))
        .route("/experimental/console", get(console))
        .route("/experimental/console/orgs", get(orgs))
        .route("/experimental/console/switch", post(no_console))
        .route(
            "/experimental/worktree",
            get(none).post(no_worktree).delete(no_worktree),
        )
        .route("/experimental/worktree/reset", post(no_worktree))
        .route("/experimental/workspace", get(none).post(no_workspace))
        .route("/experimental/workspace/status", get(none))
        .route("/experimental/workspace/adapter", get(none))
}

async fn tool_ids(State(agent): State<Agent>) -> Json<Vec<String>> {
    Json(agent.tool_names())
}

/// The model that a list of tools is for.
#[derive(Deserialize)]
struct For {
    provider: String,
    model: String,
}

async fn tools(State(agent): State<Agent>, Query(wanted): Query<For>) -> Json<Value> {
    let model = ModelRef {
        provider_id: wanted.provider,
        model_id: wanted.model,
        variant: None,
    };
    let tools = agent.tool_list(&model).await.into_iter().map(|tool| {
        json!({ "id": tool.name, "description": tool.description, "parameters": tool.parameters })
    });
    Json(tools.collect())
}

#[derive(Deserialize)]
struct SessionsQuery {
    directory: Option<String>,
    roots: Option<bool>,
    start: Option<f64>,
    cursor: Option<f64>,
    search: Option<String>,
    limit: Option<usize>,
    archived: Option<bool>,
}

/// Default page size.
const PAGE: usize = 100;

/// Converts a client's milliseconds.
pub(crate) fn millis(value: Option<f64>) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast from a float stops at the ends of the range, which is what is meant"
    )]
    value.map(|ms| ms as u64)
}

/// Returns sessions of every project (for a plugin, of its own), latest first; the header `x-next-cursor` is the cursor of the next page.
async fn sessions(
    State(agent): State<Agent>,
    scope: Option<Extension<Scope>>,
    Query(wanted): Query<SessionsQuery>,
) -> Result<Response, ApiError> {
    let limit = wanted.limit.unwrap_or(PAGE);
    let filter = SessionFilter {
        directory: wanted
            .directory
            .map(|_| agent.location().directory.to_string_lossy().into_owned()),
        roots_only: wanted.roots == Some(true),
        since: millis(wanted.start),
        before: millis(wanted.cursor),
        search: wanted.search,
        not_archived: wanted.archived != Some(true),
        limit: Some(limit.saturating_add(1)),
        ..SessionFilter::default()
    };
    let mut found = agent.store().sessions(&filter)?;
    let more = found.len() > limit;
    found.truncate(limit);
    let projects = agent.projects()?;
    let next = found.last().map(|s| s.time.updated).filter(|_| more);
    let list: Vec<Value> = found
        .into_iter()
        .filter(|session| in_scope(scope.as_ref(), session))
        .map(|session| {
            let project = projects
                .iter()
                .find(|p| p.id == session.project_id)
                .map(|p| {
                    let mut about = Object::new();
                    about.insert("id".into(), json!(p.id));
                    about.extend(p.name.as_ref().map(|name| ("name".to_owned(), json!(name))));
                    about.insert("worktree".into(), json!(p.worktree));
                    about
                });
            let mut value = json!(session);
            if let Some(fields) = value.as_object_mut() {
                fields.insert("project".into(), json!(project));
            }
            value
        })
        .collect();
    let mut response = Json(list).into_response();
    if let Some(next) = next {
        response.headers_mut().insert(
            HeaderName::from_static("x-next-cursor"),
            HeaderValue::from(next),
        );
    }
    Ok(response)
}

/// Returns whether a subagent of the session was moved to the background: not supported here, as in OpenCode without its experimental flag.
async fn background(Path(_): Path<SessionId>) -> Json<bool> {
    Json(false)
}

async fn capabilities() -> Json<Value> {
    Json(json!({ "backgroundSubagents": false }))
}

async fn console() -> Json<Value> {
    Json(json!({ "consoleManagedProviders": [], "switchableOrgCount": 0 }))
}

async fn orgs() -> Json<Value> {
    Json(json!({ "orgs": [] }))
}

async fn none() -> Json<Vec<Value>> {
    Json(Vec::new())
}

async fn no_console() -> ApiError {
    ApiError::unsupported("the console of OpenCode's maker")
}

async fn no_worktree() -> ApiError {
    ApiError::unsupported("making and removing worktrees")
}

async fn no_workspace() -> ApiError {
    ApiError::unsupported("workspaces")
}
