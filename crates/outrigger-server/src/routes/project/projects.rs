//! Projects: `/project` and its subroutes.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch, post};
use axum::{Json, Router};
use outrigger_agent::{Agent, ProjectPatch};
use outrigger_protocol::event::{CustomEvent, Event};
use outrigger_protocol::session::Project;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{ApiError, JsonResult};

pub(crate) fn routes() -> Router<Agent> {
    Router::new()
        .route("/project", get(list))
        .route("/project/current", get(current))
        .route("/project/git/init", post(init))
        .route("/project/{id}", patch(update))
        .route("/project/{id}/directories", get(directories))
        .route(
            "/experimental/project/{id}/copy",
            post(copies).delete(copies),
        )
        .route("/experimental/project/{id}/copy/refresh", post(copies))
        .route(
            "/experimental/project/{id}/copy/generate-name",
            post(copy_name),
        )
}

async fn list(State(agent): State<Agent>) -> JsonResult<Vec<Project>> {
    Ok(Json(agent.projects()?))
}

async fn current(State(agent): State<Agent>) -> JsonResult<Project> {
    Ok(Json(agent.current_project()?))
}

/// Initialises a repository in the folder. The agent continues unchanged; its project changes with the next start,
/// since the project's identifier is the first commit, which does not exist yet.
async fn init(State(agent): State<Agent>) -> JsonResult<Project> {
    let known = agent.current_project()?;
    if agent.location().git {
        return Ok(Json(known));
    }
    agent.vcs().init().await?;
    let project = Project {
        worktree: agent.location().directory.to_string_lossy().into_owned(),
        vcs: Some("git".into()),
        ..known
    };
    let properties = match json!(project) {
        Value::Object(fields) => fields,
        _ => serde_json::Map::new(),
    };
    agent
        .publish(Event::Custom(CustomEvent {
            depth: 0,
            kind: "project.updated".into(),
            properties,
        }))
        .await?;
    Ok(Json(project))
}

async fn update(
    State(agent): State<Agent>,
    Path(id): Path<String>,
    Json(body): Json<ProjectPatch>,
) -> Result<Response, ApiError> {
    Ok(match agent.update_project(&id, body).await? {
        Some(project) => Json(project).into_response(),
        // OpenCode's newer errors have this form.
        None => (
            StatusCode::NOT_FOUND,
            Json(json!({
                "_tag": "ProjectNotFoundError", "projectID": id, "message": format!("Project not found: {id}"),
            })),
        )
            .into_response(),
    })
}

async fn directories(State(agent): State<Agent>, Path(id): Path<String>) -> JsonResult<Value> {
    let folders = agent.project_directories(&id)?;
    Ok(Json(
        folders
            .into_iter()
            .map(|folder| json!({ "directory": folder }))
            .collect(),
    ))
}

/// Refuses copies of a project (worktrees that the program creates and removes), which are not supported.
async fn copies() -> ApiError {
    ApiError::unsupported("making and removing copies of a project")
}

#[derive(Default, Deserialize)]
struct CopyName {
    #[serde(default)]
    context: Option<String>,
}

/// Returns a name for a copy: from its purpose, or from two words.
async fn copy_name(body: Option<Json<CopyName>>) -> Json<Value> {
    let context = body.and_then(|Json(body)| body.context).unwrap_or_default();
    let words = context
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(4);
    let name = words.collect::<Vec<_>>().join("-").to_lowercase();
    let name = if name.is_empty() {
        outrigger_agent::ids::name()
    } else {
        name
    };
    Json(json!({ "name": name }))
}
