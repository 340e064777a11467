//! Permission questions: what is open, and the user's answers, in both forms that clients use.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use outrigger_agent::Agent;
use outrigger_protocol::id::{PermissionId, PluginId, SessionId};
use outrigger_protocol::permission::{PermissionRequest, Reply};
use serde::Deserialize;

use crate::dispatch::Sender;
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
struct ReplyBody {
    reply: Reply,
    #[serde(default)]
    message: Option<String>,
}

async fn reply(
    State(agent): State<Agent>,
    Path(id): Path<PermissionId>,
    sender: Option<Extension<Sender>>,
    Json(body): Json<ReplyBody>,
) -> Result<Json<bool>, ApiError> {
    answer(&agent, &id, sender, body)
}

/// The older form.
#[derive(Deserialize)]
struct Response {
    response: Reply,
}

async fn respond(
    State(agent): State<Agent>,
    Path((session, id)): Path<(SessionId, PermissionId)>,
    sender: Option<Extension<Sender>>,
    Json(body): Json<Response>,
) -> Result<Json<bool>, ApiError> {
    agent.session(&session)?;
    // Who may answer for one session must not answer for another by its question's identifier.
    let is_its_own = |asked: &PermissionRequest| asked.id == id && asked.session_id == session;
    if !agent.questions().iter().any(is_its_own) {
        return Err(gone(&id));
    }
    let body = ReplyBody {
        reply: body.response,
        message: None,
    };
    answer(&agent, &id, sender, body)
}

/// `sender` is there where a plugin's client replies. It may reject; to approve in the user's place takes the same grant as
/// in its `permission.ask` hook.
fn answer(
    agent: &Agent,
    id: &PermissionId,
    sender: Option<Extension<Sender>>,
    body: ReplyBody,
) -> Result<Json<bool>, ApiError> {
    if let (Some(Extension(Sender(plugin))), true) = (sender, body.reply != Reply::Reject) {
        refuse_ungranted(agent, id, plugin)?;
    }
    if agent.answer_with(id, body.reply, body.message) {
        return Ok(Json(true));
    }
    Err(gone(id))
}

/// 403 unless this plugin may approve. In a process that several share, nobody is known for certain; one that may approve
/// has a process of its own.
fn refuse_ungranted(
    agent: &Agent,
    id: &PermissionId,
    plugin: Option<String>,
) -> Result<(), ApiError> {
    let why = match plugin {
        Some(plugin) => agent.may_not_approve(id, &PluginId(plugin)),
        None => Some("a plugin without `approve` may not approve it".to_owned()),
    };
    why.map_or(Ok(()), |why| Err(ApiError::forbidden(why)))
}

fn gone(id: &PermissionId) -> ApiError {
    ApiError::tagged(
        StatusCode::NOT_FOUND,
        "PermissionNotFoundError",
        ("requestID", id.as_str()),
        format!("no permission request `{id}` waits for an answer"),
    )
}
