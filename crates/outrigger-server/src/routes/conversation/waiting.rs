//! Routes for open questions to the user, in all projects, and their answers.

use axum::extract::{Path, State};
use axum::{Extension, Json};
use outrigger_agent::Agent;
use outrigger_api::Waiting;
use outrigger_protocol::id::{PermissionId, QuestionId};

use super::source::{Source, waiting_of};
use crate::access::author::By;
use crate::access::scope::{Scope, Within, in_scope};
use crate::error::{ApiError, JsonResult};
use crate::routes::session::permission::{self, ReplyBody};
use crate::routes::session::question::{self, Answers};

pub(super) async fn list(
    State(source): State<Source>,
    scope: Option<Extension<Scope>>,
) -> JsonResult<Vec<Waiting>> {
    let reader = source.reader()?;
    let mut waiting = reader.live().waiting();
    if scope.is_some() {
        let mut own = Vec::new();
        for one in waiting {
            let session = reader.store().session(one.conversation())?;
            if session.is_some_and(|session| in_scope(scope.as_ref(), &session)) {
                own.push(one);
            }
        }
        waiting = own;
    }
    Ok(Json(waiting))
}

/// Returns the agent that asks; if there is none, any agent, which reports that.
fn asks(
    source: &Source,
    own: Option<&Extension<Within>>,
    is_it: impl Fn(&Waiting) -> bool,
) -> Option<Agent> {
    let agents = source.agents(own.map(|Extension(Within(folder))| folder.as_path()));
    agents
        .into_iter()
        .find(|agent| waiting_of(agent).iter().any(&is_it))
}

fn is_permission(id: &PermissionId) -> impl Fn(&Waiting) -> bool {
    move |one| matches!(one, Waiting::Permission { request, .. } if request.id == *id)
}

fn is_question(id: &QuestionId) -> impl Fn(&Waiting) -> bool {
    move |one| matches!(one, Waiting::Question { request } if request.id == *id)
}

pub(super) async fn reply(
    State(source): State<Source>,
    Path(id): Path<PermissionId>,
    own: Option<Extension<Within>>,
    By(by): By,
    Json(body): Json<ReplyBody>,
) -> Result<Json<bool>, ApiError> {
    let agent =
        asks(&source, own.as_ref(), is_permission(&id)).ok_or_else(|| permission::gone(&id))?;
    permission::answer(&agent, &id, by, body)
}

pub(super) async fn answer(
    State(source): State<Source>,
    Path(id): Path<QuestionId>,
    own: Option<Extension<Within>>,
    By(by): By,
    Json(body): Json<Answers>,
) -> Result<Json<bool>, ApiError> {
    let agent = asks(&source, own.as_ref(), is_question(&id)).ok_or_else(|| question::gone(&id))?;
    question::reply_by(&agent, &id, &by, body)
}

pub(super) async fn reject(
    State(source): State<Source>,
    Path(id): Path<QuestionId>,
    own: Option<Extension<Within>>,
) -> Result<Json<bool>, ApiError> {
    let agent = asks(&source, own.as_ref(), is_question(&id)).ok_or_else(|| question::gone(&id))?;
    question::answer(&agent, &id, None)
}
