//! `/outrigger/session`, `/outrigger/permission` and `/outrigger/check`: requests of the `outrigger` command to an agent, here or
//! on a server, that OpenCode's API lacks.

use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use outrigger_agent::{Agent, AgentError, Origin, TurnRequest};
use outrigger_protocol::event::StoredEvents;
use outrigger_protocol::id::{PermissionId, SessionId};
use outrigger_protocol::log::LogRecord;
use outrigger_protocol::message::ModelRef;
use outrigger_protocol::session::{PromptInput, Session};
use outrigger_protocol::turn::{TurnBody, TurnOutcome};
use outrigger_store::{RecordQuery, Scope, SessionFilter};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::author::Author;
use crate::access::marks::{FromPlugin, LocalUser};
use crate::error::{ApiError, JsonResult};
use crate::request::MAX_BYTES;

pub(crate) fn routes() -> Router<Agent> {
    Router::new()
        .route("/outrigger/check", post(check))
        .route("/outrigger/permission/{id}/grant", post(grant))
        .route("/outrigger/session/latest", get(latest))
        .route("/outrigger/session/{id}/cancel", post(cancel))
        .route("/outrigger/session/{id}/event", get(events))
        .route("/outrigger/session/{id}/interrupted", get(interrupted))
        .route("/outrigger/session/{id}/turn", post(turn))
}

/// The names that a prompt would use.
#[derive(Deserialize)]
struct Check {
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    model: Option<ModelRef>,
    #[serde(default)]
    executor: Option<String>,
    /// The session exists already: its own model takes precedence over the configured one.
    #[serde(default)]
    continues: bool,
}

/// Checks that command, agent and model exist. A client calls this before it creates a session, so that a mistyped name leaves
/// nothing behind; the turn checks again.
async fn check(
    State(agent): State<Agent>,
    Json(check): Json<Check>,
) -> Result<StatusCode, ApiError> {
    let command = match &check.command {
        Some(name) if agent.is_compact(name) => None,
        Some(name) => Some(agent.find_command(name).await?),
        None => None,
    };
    let of_command = |field: fn(&outrigger_agent::CommandInfo) -> Option<String>| {
        command.as_ref().and_then(field)
    };
    let name = of_command(|it| it.agent.clone())
        .or(check.agent)
        .or_else(|| agent.default_agent());
    let info = match name {
        Some(name) => Some(
            agent
                .agents()
                .get(&name)
                .ok_or_else(|| no_agent(&agent, name))?,
        ),
        None => None,
    };
    let prompt = PromptInput {
        agent: info.map(|it| it.name.clone()),
        executor: check.executor,
        ..PromptInput::default()
    };
    // It has its own model.
    if agent.executor(&prompt)?.is_some() {
        return Ok(StatusCode::NO_CONTENT);
    }
    let model = of_command(|it| it.model.clone())
        .as_deref()
        .and_then(ModelRef::parse);
    let model = model.or(check.model).or_else(|| info?.model.clone());
    // Models of a login through a plugin are known only after the plugin has answered.
    agent.providers_ready().await;
    let models = agent.models();
    match model {
        Some(model) => models.resolve(&model).map(drop),
        None if check.continues => Ok(()),
        None => models
            .default_model()
            .and_then(|model| models.resolve(&model).map(drop)),
    }
    .map_err(AgentError::from)?;
    Ok(StatusCode::NO_CONTENT)
}

fn no_agent(agent: &Agent, name: String) -> AgentError {
    let shown = agent.agents().values().filter(|info| !info.hidden);
    AgentError::NoAgent {
        known: shown.map(|info| info.name.clone()).collect(),
        name,
    }
}

/// Returns the session of this folder that was used last, whichever project the folder belonged to then.
async fn latest(State(agent): State<Agent>) -> JsonResult<Option<Session>> {
    let filter = SessionFilter {
        directory: Some(agent.location().directory.to_string_lossy().into_owned()),
        roots_only: true,
        limit: Some(1),
        ..SessionFilter::default()
    };
    Ok(Json(agent.store().sessions(&filter)?.into_iter().next()))
}

/// Returns the unfinished turn of a session that no process works on. The check locks the session for a moment, so a plugin could
/// use it to keep others from the session.
async fn interrupted(
    State(agent): State<Agent>,
    Path(id): Path<SessionId>,
    from_plugin: Option<Extension<FromPlugin>>,
) -> JsonResult<Value> {
    if from_plugin.is_some() {
        return Err(ApiError::forbidden("a plugin cannot resume a turn"));
    }
    // A turn that runs here is not abandoned.
    let turn = if agent.statuses().contains_key(&id) {
        None
    } else {
        agent.interrupted(&id)?
    };
    Ok(Json(json!({ "turn": turn })))
}

#[derive(Deserialize)]
struct After {
    after: Option<i64>,
}

/// Returns the stored events after a record, for a client that missed some; without a record number only the last one of the log.
async fn events(
    State(agent): State<Agent>,
    Path(id): Path<SessionId>,
    Query(query): Query<After>,
) -> JsonResult<StoredEvents> {
    let head = agent.store().head()?.seq;
    let records = match query.after {
        Some(after) => agent.store().records(&RecordQuery {
            scope: Some(Scope::Session(&id)),
            kind: Some("event"),
            after,
            limit: None,
        })?,
        None => Vec::new(),
    };
    let events = records
        .into_iter()
        .filter_map(|stored| match stored.record {
            LogRecord::Event(event) => Some(*event),
            _ => None,
        });
    Ok(Json(StoredEvents {
        head,
        events: events.collect(),
    }))
}

/// Cancels what runs in a session; returns `false` if nothing runs yet.
async fn cancel(State(agent): State<Agent>, Path(id): Path<SessionId>) -> Json<bool> {
    Json(agent.cancel(&id))
}

/// Permanently grants a plugin what a question is about, and answers the question. Null if no grant is missing.
async fn grant(
    State(agent): State<Agent>,
    Path(id): Path<PermissionId>,
    user: Option<Extension<LocalUser>>,
) -> JsonResult<Value> {
    if user.is_none() {
        return Err(ApiError::forbidden(
            "only the user can change what plugins may do: `outrigger plugin grant`",
        ));
    }
    let file = agent.grant(&id)?;
    let file = file.map(|file| file.display().to_string());
    Ok(Json(json!({ "file": file })))
}

/// Runs a turn and returns how it ended.
async fn turn(
    State(agent): State<Agent>,
    Path(id): Path<SessionId>,
    Author(author): Author,
    request: Request,
) -> JsonResult<TurnOutcome> {
    let is_local = request.extensions().get::<LocalUser>().is_some();
    // The user's own program has applied its limits already.
    let limit = if is_local { usize::MAX } else { MAX_BYTES };
    let body = axum::body::to_bytes(request.into_body(), limit)
        .await
        .map_err(|error| ApiError::bad_payload(error.to_string()))?;
    let body =
        serde_json::from_slice(&body).map_err(|error| ApiError::bad_payload(error.to_string()))?;
    let request = match body {
        TurnBody::Resume(turn) => TurnRequest::resume(&id, turn),
        TurnBody::Command(call, mut prompt) => {
            prompt.provenance = author;
            TurnRequest::command(&id, &call.name, &call.arguments, prompt)
        }
        TurnBody::Prompt(mut prompt) => {
            prompt.provenance = author;
            // A prompt for an unavailable model would be stored; the user would rather repeat it.
            agent.providers_ready().await;
            agent.check_model(&id, &prompt)?;
            TurnRequest::prompt(&id, prompt)
        }
    };
    let origin = if is_local {
        Origin::Program
    } else {
        Origin::Client
    };
    Ok(Json(agent.run(request.from_origin(origin)).await?))
}
