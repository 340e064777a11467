//! Routes that change a session, its messages and parts.

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::middleware::from_fn;
use axum::routing::{delete, get, patch, post};
use axum::{Json, Router};
use outrigger_agent::{Agent, Origin, ShellInput, TurnRequest};
use outrigger_protocol::Object;
use outrigger_protocol::id::{MessageId, PartId, SessionId};
use outrigger_protocol::message::{MessageInfo, MessageWithParts, ModelRef, Part};
use outrigger_protocol::permission::Rule;
use outrigger_protocol::provenance::Provenance;
use outrigger_protocol::session::{PluginRule, PromptInput, Session};
use serde::Deserialize;
use serde_json::Value;

use crate::access::author::By;
use crate::access::scope::unsandboxed_only;
use crate::error::{ApiError, JsonResult};
use crate::routes::session::turn::{Turn, TurnBody};

pub(crate) fn routes() -> Router<Agent> {
    Router::new()
        .route("/session/{id}", patch(update))
        .route("/session/{id}/fork", post(fork))
        .route("/session/{id}/init", post(init))
        .route("/session/{id}/share", post(share).delete(unshare))
        .route("/session/{id}/diff", get(diff))
        .route(
            "/session/{id}/shell",
            post(shell).route_layer(from_fn(unsandboxed_only)),
        )
        .route("/session/{id}/revert", post(revert))
        .route("/session/{id}/unrevert", post(unrevert))
        .route("/session/{id}/message/{message}", delete(remove_message))
        .route(
            "/session/{id}/message/{message}/part/{part}",
            delete(remove_part).patch(update_part),
        )
}

#[derive(Deserialize)]
struct Update {
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    metadata: Option<Object>,
    #[serde(default)]
    permission: Option<Vec<Rule>>,
    #[serde(default)]
    time: Option<Times>,
}

#[derive(Deserialize)]
struct Times {
    #[serde(default)]
    archived: Option<f64>,
}

/// Rules are appended to those of the session; the last match wins.
async fn update(
    State(agent): State<Agent>,
    Path(id): Path<SessionId>,
    By(by): By,
    Json(body): Json<Update>,
) -> JsonResult<Session> {
    let plugin = by.plugin_id();
    let changed = agent.update_session(&id, |session| {
        if let Some(title) = body.title {
            session.title = title;
        }
        if body.metadata.is_some() {
            session.metadata = body.metadata;
        }
        if let Some(rules) = body.permission {
            let given = plugin
                .iter()
                .flat_map(|plugin| PluginRule::each(plugin, &rules));
            session.plugin_rules.extend(given);
            session.permission.get_or_insert_default().extend(rules);
        }
        if let Some(archived) = body.time.and_then(|time| time.archived) {
            // A cast from float to integer saturates.
            session.time.archived = Some(archived as u64);
        }
    });
    Ok(Json(changed.await?))
}

#[derive(Default, Deserialize)]
struct Fork {
    #[serde(default, rename = "messageID")]
    message_id: Option<MessageId>,
}

/// Parses an optional body.
fn optional<T: Default + for<'de> Deserialize<'de>>(body: &Bytes) -> Result<T, ApiError> {
    if body.trim_ascii().is_empty() {
        return Ok(T::default());
    }
    serde_json::from_slice(body).map_err(|e| ApiError::bad_payload(format!("invalid body: {e}")))
}

async fn fork(
    State(agent): State<Agent>,
    Path(id): Path<SessionId>,
    body: Bytes,
) -> JsonResult<Session> {
    let body: Fork = optional(&body)?;
    Ok(Json(
        agent.fork_session_at(&id, body.message_id.as_ref()).await?,
    ))
}

#[derive(Deserialize)]
struct Init {
    #[serde(rename = "providerID")]
    provider_id: String,
    #[serde(rename = "modelID")]
    model_id: String,
    #[serde(rename = "messageID")]
    message_id: MessageId,
}

async fn init(State(agent): State<Agent>, turn: Turn<Init>) -> JsonResult<bool> {
    agent.run(turn.of(Origin::Plugin)).await?;
    Ok(Json(true))
}

impl TurnBody for Init {
    fn turn(self, session: &SessionId, author: Provenance) -> Result<TurnRequest, ApiError> {
        let prompt = PromptInput {
            message_id: Some(self.message_id),
            model: Some(ModelRef {
                provider_id: self.provider_id,
                model_id: self.model_id,
                variant: None,
            }),
            provenance: author,
            ..PromptInput::default()
        };
        Ok(TurnRequest::command(session, "init", "", prompt))
    }
}

#[derive(Deserialize)]
struct Shell {
    command: String,
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    model: Option<ModelRef>,
    #[serde(default, rename = "messageID")]
    message_id: Option<MessageId>,
}

/// Returns the second message of the pair: the command with its output.
async fn shell(
    State(agent): State<Agent>,
    Path(id): Path<SessionId>,
    Json(body): Json<Shell>,
) -> JsonResult<MessageWithParts> {
    let input = ShellInput {
        command: body.command,
        agent: body.agent,
        model: body.model,
        message_id: body.message_id,
    };
    agent.session(&id)?;
    Ok(Json(agent.shell(&id, input).await?))
}

/// Refuses to share: nothing leaves this machine. The response is OpenCode's if sharing is
/// disabled.
async fn share(State(agent): State<Agent>, Path(id): Path<SessionId>) -> JsonResult<Session> {
    agent.session(&id)?;
    Err(ApiError::tagged(
        StatusCode::INTERNAL_SERVER_ERROR,
        "InternalServerError",
        ("sessionID", id.as_str()),
        "sharing is not provided: sessions stay on this machine (`outrigger session export` writes one to a file)",
    ))
}

/// Succeeds: sessions are never shared.
async fn unshare(State(agent): State<Agent>, Path(id): Path<SessionId>) -> JsonResult<Session> {
    Ok(Json(agent.session(&id)?))
}

#[derive(Deserialize)]
struct DiffOf {
    #[serde(rename = "messageID")]
    message_id: Option<MessageId>,
}

/// Returns the files that the answer to a message changed.
async fn diff(
    State(agent): State<Agent>,
    Path(id): Path<SessionId>,
    Query(of): Query<DiffOf>,
) -> JsonResult<Vec<Value>> {
    let Some(message) = of.message_id else {
        return Ok(Json(Vec::new()));
    };
    let found = agent.store().message(&id, &message)?.map(|m| m.info);
    let diffs = found.as_ref().and_then(diffs_of);
    Ok(Json(diffs.cloned().unwrap_or_default()))
}

/// Returns the files that the answer to a prompt changed.
pub(crate) fn diffs_of(message: &MessageInfo) -> Option<&Vec<Value>> {
    let MessageInfo::User(user) = message else {
        return None;
    };
    user.summary.as_ref()?.get("diffs")?.as_array()
}

#[derive(Deserialize)]
struct Revert {
    #[serde(rename = "messageID")]
    message_id: MessageId,
    #[serde(default, rename = "partID")]
    part_id: Option<PartId>,
    /// Our extension: overwrite later changes of the files by others.
    #[serde(default)]
    force: bool,
}

async fn revert(
    State(agent): State<Agent>,
    Path(id): Path<SessionId>,
    By(by): By,
    Json(body): Json<Revert>,
) -> JsonResult<Session> {
    let part = body.part_id.as_ref();
    let done = agent.revert(&id, &body.message_id, part, body.force, &by);
    Ok(Json(done.await?))
}

#[derive(Default, Deserialize)]
struct Unrevert {
    #[serde(default)]
    force: bool,
}

async fn unrevert(
    State(agent): State<Agent>,
    Path(id): Path<SessionId>,
    By(by): By,
    body: Bytes,
) -> JsonResult<Session> {
    let body: Unrevert = optional(&body)?;
    Ok(Json(agent.unrevert(&id, body.force, &by).await?))
}

async fn remove_message(
    State(agent): State<Agent>,
    Path((id, message)): Path<(SessionId, MessageId)>,
    By(by): By,
) -> JsonResult<bool> {
    agent.remove_message(&id, &message, &by).await?;
    Ok(Json(true))
}

async fn remove_part(
    State(agent): State<Agent>,
    Path((id, message, part)): Path<(SessionId, MessageId, PartId)>,
    By(by): By,
) -> JsonResult<bool> {
    agent.remove_part(&id, &message, &part, &by).await?;
    Ok(Json(true))
}

async fn update_part(
    State(agent): State<Agent>,
    Path((id, message, part)): Path<(SessionId, MessageId, PartId)>,
    By(by): By,
    Json(body): Json<Part>,
) -> JsonResult<Part> {
    agent.session(&id)?;
    for (sent, named) in [
        (body.session_id.as_str(), id.as_str()),
        (body.message_id.as_str(), message.as_str()),
        (body.id.as_str(), part.as_str()),
    ] {
        if sent != named {
            return Err(
                outrigger_agent::AgentError::Part(format!("`{sent}` is not `{named}`")).into(),
            );
        }
    }
    Ok(Json(agent.update_part(body, &by).await?))
}
