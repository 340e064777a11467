//! Questions of the model to the user (tool `question`).

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use outrigger_agent::Agent;
use outrigger_protocol::id::QuestionId;
use outrigger_protocol::provenance::Actor;
use outrigger_protocol::question::{Answer, QuestionRequest};
use serde::Deserialize;

use crate::access::author::By;
use crate::error::ApiError;

pub(crate) fn routes() -> Router<Agent> {
    Router::new()
        .route("/question", get(list))
        .route("/question/{id}/reply", post(reply))
        .route("/question/{id}/reject", post(reject))
}

async fn list(State(agent): State<Agent>) -> Json<Vec<QuestionRequest>> {
    Json(agent.user_questions())
}

#[derive(Deserialize)]
pub(crate) struct Answers {
    answers: Vec<Answer>,
}

async fn reply(
    State(agent): State<Agent>,
    Path(id): Path<QuestionId>,
    By(by): By,
    Json(body): Json<Answers>,
) -> Result<Json<bool>, ApiError> {
    reply_by(&agent, &id, &by, body)
}

pub(crate) fn reply_by(
    agent: &Agent,
    id: &QuestionId,
    by: &Actor,
    body: Answers,
) -> Result<Json<bool>, ApiError> {
    // The model takes the answer for the user's.
    if let Some(plugin) = by.plugin_id()
        && let Some(why) = agent.may_not_answer(&plugin)
    {
        return Err(ApiError::forbidden(why));
    }
    answer(agent, id, Some(body.answers))
}

async fn reject(
    State(agent): State<Agent>,
    Path(id): Path<QuestionId>,
) -> Result<Json<bool>, ApiError> {
    answer(&agent, &id, None)
}

pub(crate) fn answer(
    agent: &Agent,
    id: &QuestionId,
    answers: Option<Vec<Answer>>,
) -> Result<Json<bool>, ApiError> {
    if agent.answer_question(id, answers) {
        return Ok(Json(true));
    }
    Err(gone(id))
}

pub(crate) fn gone(id: &QuestionId) -> ApiError {
    ApiError::tagged(
        StatusCode::NOT_FOUND,
        "QuestionNotFoundError",
        ("requestID", id.as_str()),
        format!("no question `{id}` waits for an answer"),
    )
}
