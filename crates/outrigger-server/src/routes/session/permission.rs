//! Permission questions: the open ones, and the user's answers, in both forms that clients use.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use outrigger_agent::Agent;
use outrigger_protocol::id::{PermissionId, SessionId};
use outrigger_protocol::permission::{PermissionRequest, Reply};
use outrigger_protocol::provenance::Actor;
use serde::Deserialize;

use crate::access::author::By;
use crate::error::ApiError;

pub(crate) fn routes() -> Router<Agent> {
    Router::new()
        .route("/permission", get(list))
        .route("/permission/{id}/reply", post(reply))
        .route("/session/{id}/permissions/{request}", post(respond))
}

async fn list(State(agent): State<Agent>) -> Json<Vec<PermissionRequest>> {
    Json(agent.questions())
}

#[derive(Deserialize)]
pub(crate) struct ReplyBody {
    reply: Reply,
    #[serde(default)]
    message: Option<String>,
}

async fn reply(
    State(agent): State<Agent>,
    Path(id): Path<PermissionId>,
    By(by): By,
    Json(body): Json<ReplyBody>,
) -> Result<Json<bool>, ApiError> {
    answer(&agent, &id, by, body)
}

/// The older form.
#[derive(Deserialize)]
struct Response {
    response: Reply,
}

async fn respond(
    State(agent): State<Agent>,
    Path((session, id)): Path<(SessionId, PermissionId)>,
    By(by): By,
    Json(body): Json<Response>,
) -> Result<Json<bool>, ApiError> {
    agent.session(&session)?;
    // A client that may answer for one session must not answer for another by its question's identifier.
    let is_its_own = |asked: &PermissionRequest| asked.id == id && asked.session_id == session;
    if !agent.questions().iter().any(is_its_own) {
        return Err(gone(&id));
    }
    let body = ReplyBody {
        reply: body.response,
        message: None,
    };
    answer(&agent, &id, by, body)
}

/// Answers a question. A plugin's client may reject; to approve for the user it needs the same grant as its `permission.ask`
/// hook. A plugin that may approve has its own process, so its identity is certain.
pub(crate) fn answer(
    agent: &Agent,
    id: &PermissionId,
    by: Actor,
    body: ReplyBody,
) -> Result<Json<bool>, ApiError> {
    if let (Some(plugin), true) = (by.plugin_id(), body.reply != Reply::Reject)
        && let Some(why) = agent.may_not_approve(id, &plugin)
    {
        return Err(ApiError::forbidden(why));
    }
    if agent.answer_with(id, body.reply, body.message, by) {
        return Ok(Json(true));
    }
    Err(gone(id))
}

pub(crate) fn gone(id: &PermissionId) -> ApiError {
    ApiError::tagged(
        StatusCode::NOT_FOUND,
        "PermissionNotFoundError",
        ("requestID", id.as_str()),
        format!("no permission request `{id}` waits for an answer"),
    )
}
