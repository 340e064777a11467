//! Routes under `/session`.

use std::collections::BTreeMap;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use outrigger_agent::{Agent, AgentError, NewSession, Origin, TurnRequest};
use outrigger_protocol::Object;
use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::{MessageInfo, MessageWithParts, ModelRef, PartKind};
use outrigger_protocol::permission::Rule;
use outrigger_protocol::provenance::Provenance;
use outrigger_protocol::session::{
    PartInput, PluginRule, PromptInput, Session, SessionModel, SessionStatus, Todo,
};
use outrigger_protocol::turn::TurnOutcome;
use outrigger_store::SessionFilter;
use serde::Deserialize;

use crate::access::author::By;
use crate::access::scope::{Scope, in_scope};
use crate::error::{ApiError, JsonResult};
use crate::routes::session::turn::{Turn, TurnBody};

pub(crate) fn routes() -> Router<Agent> {
    Router::new()
        .route("/session", get(list).post(create))
        .route("/session/status", get(status))
        .route("/session/{id}", get(one).delete(delete))
        .route("/session/{id}/children", get(children))
        .route("/session/{id}/todo", get(todo))
        .route(
            "/session/{id}/message",
            get(crate::routes::session::page::messages).post(prompt),
        )
        .route("/session/{id}/message/{message}", get(message))
        .route("/session/{id}/prompt_async", post(prompt_async))
        .route("/session/{id}/command", post(command))
        .route("/session/{id}/abort", post(abort))
}

/// The requested sessions of the project. `directory` selects the agent, and limits the list to its folder.
#[derive(Deserialize)]
struct ListQuery {
    directory: Option<String>,
    scope: Option<ListScope>,
    path: Option<String>,
    roots: Option<bool>,
    start: Option<f64>,
    search: Option<String>,
    limit: Option<usize>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ListScope {
    Project,
}

/// Default number of sessions.
const PAGE: usize = 100;

async fn list(
    State(agent): State<Agent>,
    scope: Option<Extension<Scope>>,
    Query(wanted): Query<ListQuery>,
) -> JsonResult<Vec<Session>> {
    let path = wanted.path;
    let own_folder = wanted.directory.is_some() && wanted.scope.is_none() && path.is_none();
    let filter = SessionFilter {
        project: Some(agent.project().id.clone()),
        directory: own_folder.then(|| agent.location().directory.to_string_lossy().into_owned()),
        path: path.filter(|path| !path.is_empty()),
        roots_only: wanted.roots == Some(true),
        since: crate::routes::experimental::millis(wanted.start),
        search: wanted.search,
        limit: Some(wanted.limit.unwrap_or(PAGE)),
        ..SessionFilter::default()
    };
    let mut found = agent.store().sessions(&filter)?;
    // Folders without a repository form one project that does not belong to a single plugin.
    found.retain(|session| in_scope(scope.as_ref(), session));
    Ok(Json(found))
}

#[derive(Default, Deserialize)]
struct Create {
    #[serde(default, rename = "parentID")]
    parent_id: Option<SessionId>,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    permission: Option<Vec<Rule>>,
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    model: Option<SessionModel>,
    #[serde(default)]
    metadata: Option<Object>,
    #[serde(default, rename = "workspaceID")]
    workspace: Option<String>,
}

async fn create(
    State(agent): State<Agent>,
    By(by): By,
    body: Option<Json<Create>>,
) -> JsonResult<Session> {
    let Create {
        parent_id,
        title,
        permission,
        agent: with_agent,
        model,
        metadata,
        workspace,
    } = body.map(|Json(b)| b).unwrap_or_default();
    if let Some(id) = workspace.as_deref().filter(|id| !id.starts_with("wrk")) {
        return Err(ApiError::bad_payload(format!(
            "`workspaceID` begins with `wrk`, and `{id}` does not"
        )));
    }
    if let Some(parent) = &parent_id {
        agent.session(parent)?;
    }
    if let Some(model) = &model {
        agent.may_begin_with(&by, model)?;
    }
    let given = permission.as_deref().unwrap_or_default();
    let plugin = by.plugin_id();
    let with_agent = with_agent.filter(|named| {
        let mut plugins = plugin.iter();
        parent_id.is_some() || plugins.all(|plugin| agent.may_leave_agent(plugin, None, named))
    });
    let plugin_rules = plugin
        .iter()
        .flat_map(|plugin| PluginRule::each(plugin, given))
        .collect();
    let session = agent
        .create_session(NewSession {
            parent: parent_id,
            title,
            permission,
            plugin_rules,
            agent: with_agent,
            model,
            metadata,
            workspace,
        })
        .await?;
    Ok(Json(session))
}

/// Returns the status of the active sessions; idle ones are omitted, as in OpenCode.
async fn status(State(agent): State<Agent>) -> Json<BTreeMap<SessionId, SessionStatus>> {
    Json(agent.statuses())
}

async fn one(State(agent): State<Agent>, Path(id): Path<SessionId>) -> JsonResult<Session> {
    Ok(Json(agent.session(&id)?))
}

async fn delete(
    State(agent): State<Agent>,
    Path(id): Path<SessionId>,
    By(by): By,
) -> JsonResult<bool> {
    agent.delete_session(&id, &by).await?;
    Ok(Json(true))
}

async fn children(
    State(agent): State<Agent>,
    Path(id): Path<SessionId>,
) -> JsonResult<Vec<Session>> {
    agent.session(&id)?;
    Ok(Json(agent.store().children(&id)?))
}

async fn todo(State(agent): State<Agent>, Path(id): Path<SessionId>) -> JsonResult<Vec<Todo>> {
    agent.session(&id)?;
    Ok(Json(agent.store().todos(&id)?))
}

async fn message(
    State(agent): State<Agent>,
    Path((id, message)): Path<(SessionId, MessageId)>,
) -> JsonResult<MessageWithParts> {
    let found = agent.store().message(&id, &message)?;
    found.map(Json).ok_or_else(|| {
        ApiError::missing(format!("there is no message `{message}` in session `{id}`"))
    })
}

/// Returns the result of a prompt: the last message, which is the user's own if no reply was requested.
async fn prompt(
    State(agent): State<Agent>,
    Path(id): Path<SessionId>,
    turn: Turn<PromptInput>,
) -> JsonResult<MessageWithParts> {
    let outcome = agent.run(turn.attended()).await?;
    last_message(&agent, &id, outcome)
}

impl TurnBody for PromptInput {
    fn turn(self, session: &SessionId, author: Provenance) -> Result<TurnRequest, ApiError> {
        let prompt = Self {
            provenance: author,
            ..self
        };
        Ok(TurnRequest::prompt(session, prompt))
    }
}

fn last_message(
    agent: &Agent,
    id: &SessionId,
    outcome: TurnOutcome,
) -> JsonResult<MessageWithParts> {
    let history = agent.history(id)?;
    let mut newest = history.iter().rev().filter_map(|m| m.stored());
    let last = newest.clone().next();
    let wanted = match &outcome {
        TurnOutcome::Done {
            message_id: Some(wanted),
        } => newest.find(|m| m.info.id() == wanted),
        TurnOutcome::Done { message_id: None } => None,
        // As in OpenCode: the partial answer, although later prompts may follow it.
        TurnOutcome::Cancelled | TurnOutcome::Failed { .. } => {
            newest.find(|m| matches!(m.info, MessageInfo::Assistant(_)))
        }
    };
    match wanted.or(last) {
        Some(message) => Ok(Json(message.clone())),
        None => Err(ApiError::missing(format!("session `{id}` has no messages"))),
    }
}

async fn prompt_async(
    State(agent): State<Agent>,
    Path(id): Path<SessionId>,
    turn: Turn<PromptInput>,
) -> Result<StatusCode, ApiError> {
    let request = turn.of(Origin::Client);
    request.check_format()?;
    // The turn starts after the response.
    let working = agent.begin_work();
    tokio::spawn(async move {
        let _working = working;
        let answered = agent.run(request).await;
        // The turn has reported that its model is unavailable.
        let is_reported = matches!(answered, Err(AgentError::Unaskable(_)));
        if let Some(error) = answered.err().filter(|_| !is_reported) {
            tracing::warn!("[prompt_async] {id}: {error}");
            let error = outrigger_protocol::event::Event::SessionError {
                session_id: Some(id),
                error: error.to_named(),
            };
            if let Err(error) = agent.publish(error).await {
                tracing::error!("[prompt_async] {error}");
            }
        }
    });
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
struct CommandBody {
    command: String,
    #[serde(default)]
    arguments: String,
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    variant: Option<String>,
    /// Identifier of the user message, if the client chose one.
    #[serde(default, rename = "messageID")]
    message_id: Option<MessageId>,
    /// Files for the command.
    #[serde(default)]
    parts: Vec<PartInput>,
}

async fn command(
    State(agent): State<Agent>,
    Path(id): Path<SessionId>,
    turn: Turn<CommandBody>,
) -> JsonResult<MessageWithParts> {
    let outcome = agent.run(turn.attended()).await?;
    last_message(&agent, &id, outcome)
}

impl TurnBody for CommandBody {
    fn turn(self, session: &SessionId, author: Provenance) -> Result<TurnRequest, ApiError> {
        let name = self.command;
        let mut parts = self.parts.iter();
        if let Some(part) = parts.find(|part| !matches!(part.kind, PartKind::File(_))) {
            return Err(ApiError::bad_payload(format!(
                "only files can accompany a command, and `{name}` was sent a part of another kind{}; put the rest into `arguments`",
                part.id
                    .as_ref()
                    .map_or_else(String::new, |id| format!(" (`{id}`)")),
            )));
        }
        let prompt = PromptInput {
            message_id: self.message_id,
            parts: self.parts,
            agent: self.agent,
            model: self.model.as_deref().and_then(ModelRef::parse),
            variant: self.variant,
            provenance: author,
            ..PromptInput::default()
        };
        let request = TurnRequest::command(session, &name, &self.arguments, prompt);
        Ok(request)
    }
}

/// Does nothing if the session does not exist; OpenCode responds the same.
async fn abort(State(agent): State<Agent>, Path(id): Path<SessionId>) -> Json<bool> {
    agent.cancel(&id);
    Json(true)
}
