//! Version control: `/vcs` and its subroutes.

use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use outrigger_agent::Agent;
use outrigger_protocol::message::NamedError;
use outrigger_workspace::vcs::{Against, FileChange, VcsError};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::author::By;
use crate::error::ApiError;

pub(crate) fn routes() -> Router<Agent> {
    Router::new()
        .route("/vcs", get(info))
        .route("/vcs/status", get(status))
        .route("/vcs/diff", get(diff))
        .route("/vcs/diff/raw", get(raw))
        .route("/vcs/apply", post(apply))
}

impl From<VcsError> for ApiError {
    fn from(error: VcsError) -> Self {
        match error {
            // A patch that does not apply is a regular response, with OpenCode's two reasons.
            VcsError::NotGit | VcsError::NotClean(_) => Self::named(
                StatusCode::BAD_REQUEST,
                NamedError {
                    name: "VcsApplyError".into(),
                    data: json!({ "message": error.to_string(), "reason": error.code() }),
                },
            ),
            VcsError::Denied { .. } | VcsError::NotGranted(_) | VcsError::RunsLater { .. } => {
                Self::forbidden(error.to_string())
            }
            VcsError::NoGit | VcsError::Sandbox(_) | VcsError::Failed { .. } => {
                Self::internal(error.to_string())
            }
        }
    }
}

async fn info(State(agent): State<Agent>) -> Json<Value> {
    let vcs = agent.vcs();
    let (branch, default) = tokio::join!(vcs.branch(), vcs.default_branch());
    let mut out = serde_json::Map::new();
    let found = [
        ("branch", branch),
        ("default_branch", default.map(|(name, _)| name)),
    ];
    out.extend(
        found
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), json!(value?)))),
    );
    Json(Value::Object(out))
}

async fn status(State(agent): State<Agent>) -> Result<Json<Vec<FileChange>>, ApiError> {
    Ok(Json(agent.vcs().status().await?))
}

#[derive(Deserialize)]
struct Diff {
    mode: Mode,
    context: Option<u32>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Git,
    Branch,
}

/// Default lines of context; OpenCode returns all, so that clients show whole files.
const CONTEXT: u32 = 2_147_483_647;

async fn diff(
    State(agent): State<Agent>,
    Query(query): Query<Diff>,
) -> Result<Json<Vec<FileChange>>, ApiError> {
    let against = match query.mode {
        Mode::Git => Against::Head,
        Mode::Branch => Against::Branch,
    };
    let context = query.context.unwrap_or(CONTEXT);
    Ok(Json(agent.vcs().diff(against, context).await?))
}

async fn raw(State(agent): State<Agent>) -> Result<impl IntoResponse, ApiError> {
    let kind = [(header::CONTENT_TYPE, "text/x-diff; charset=utf-8")];
    Ok((kind, agent.vcs().raw().await?))
}

#[derive(Deserialize)]
struct Patch {
    patch: String,
}

async fn apply(
    State(agent): State<Agent>,
    By(by): By,
    Json(body): Json<Patch>,
) -> Result<Json<Value>, ApiError> {
    agent.vcs().apply(&body.patch, &by).await?;
    Ok(Json(json!({ "applied": true })))
}
