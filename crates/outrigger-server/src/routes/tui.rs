//! `/tui`: requests to a terminal interface. Each is an event for clients with a screen.

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use outrigger_agent::Agent;
use outrigger_protocol::event::{CustomEvent, Event};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::provenance::Actor;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::access::author::By;
use crate::error::ApiError;

type BoolResult = Result<Json<bool>, ApiError>;

const APPEND: &str = "tui.prompt.append";
const EXECUTE: &str = "tui.command.execute";
const TOAST: &str = "tui.toast.show";
const SELECT: &str = "tui.session.select";

/// Default duration of a toast, in milliseconds (OpenCode's figure).
const TOAST_MS: u64 = 5000;

/// The older command names of `/tui/execute-command`, and their names in events.
const COMMANDS: &[(&str, &str)] = &[
    ("session_new", "session.new"),
    ("session_share", "session.share"),
    ("session_interrupt", "session.interrupt"),
    ("session_compact", "session.compact"),
    ("messages_page_up", "session.page.up"),
    ("messages_page_down", "session.page.down"),
    ("messages_line_up", "session.line.up"),
    ("messages_line_down", "session.line.down"),
    ("messages_half_page_up", "session.half.page.up"),
    ("messages_half_page_down", "session.half.page.down"),
    ("messages_first", "session.first"),
    ("messages_last", "session.last"),
    ("agent_cycle", "agent.cycle"),
];

/// Further commands that only show something.
const SHOWING: [&str; 5] = [
    "help.show",
    "session.list",
    "theme.list",
    "model.list",
    "prompt.clear",
];

/// Commands that decide who answers the user's next input, or who may read it.
const CHOOSING: [&str; 2] = ["agent.cycle", "session.share"];

pub(crate) fn routes() -> Router<Agent> {
    let fixed = |command: &'static str| {
        post(move |State(agent): State<Agent>, By(by): By| async move {
            execute(&agent, command, &by).await
        })
    };
    Router::new()
        .route("/tui/append-prompt", post(append))
        .route("/tui/open-help", fixed("help.show"))
        .route("/tui/open-sessions", fixed("session.list"))
        // OpenCode opens the list of sessions here, which must be a mistake.
        .route("/tui/open-themes", fixed("theme.list"))
        .route("/tui/open-models", fixed("model.list"))
        .route("/tui/submit-prompt", fixed("prompt.submit"))
        .route("/tui/clear-prompt", fixed("prompt.clear"))
        .route("/tui/execute-command", post(command))
        .route("/tui/show-toast", post(toast))
        .route("/tui/publish", post(publish))
        .route("/tui/select-session", post(select))
        .route("/tui/control/next", get(next))
        .route("/tui/control/response", post(response))
}

async fn tell(agent: &Agent, kind: &str, properties: Value) -> BoolResult {
    let properties = match properties {
        Value::Object(fields) => fields,
        _ => serde_json::Map::new(),
    };
    agent
        .publish(Event::Custom(CustomEvent {
            depth: 0,
            kind: kind.to_owned(),
            properties,
        }))
        .await?;
    Ok(Json(true))
}

/// Executes a command. If a plugin makes a terminal interface send its input, or does something equivalent, it prompts for
/// the user.
async fn execute(agent: &Agent, command: &str, by: &Actor) -> BoolResult {
    let shows = SHOWING.contains(&command)
        || COMMANDS.iter().any(|(_, new)| *new == command) && !CHOOSING.contains(&command);
    if let (Some(plugin), false) = (by.plugin_id(), shows)
        && let Some(why) = agent.may_not_submit(&plugin)
    {
        return Err(ApiError::forbidden(why));
    }
    tell(agent, EXECUTE, json!({ "command": command })).await
}

#[derive(Deserialize, Serialize)]
struct Append {
    text: String,
}

async fn append(State(agent): State<Agent>, Json(body): Json<Append>) -> BoolResult {
    tell(&agent, APPEND, json!(body)).await
}

#[derive(Deserialize, Serialize)]
struct Command {
    command: String,
}

/// Maps older names to newer ones; newer names are passed on, which OpenCode drops.
async fn command(State(agent): State<Agent>, By(by): By, Json(body): Json<Command>) -> BoolResult {
    let known = COMMANDS.iter().find(|(old, _)| *old == body.command);
    execute(&agent, known.map_or(&body.command, |(_, new)| *new), &by).await
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Variant {
    Info,
    Success,
    Warning,
    Error,
}

fn toast_ms() -> u64 {
    TOAST_MS
}

#[derive(Deserialize, Serialize)]
struct Toast {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    message: String,
    variant: Variant,
    #[serde(default = "toast_ms")]
    duration: u64,
}

async fn toast(State(agent): State<Agent>, Json(body): Json<Toast>) -> BoolResult {
    tell(&agent, TOAST, json!(body)).await
}

#[derive(Deserialize, Serialize)]
struct Select {
    #[serde(rename = "sessionID")]
    session_id: SessionId,
}

async fn select(State(agent): State<Agent>, Json(body): Json<Select>) -> BoolResult {
    show(&agent, body).await
}

async fn show(agent: &Agent, body: Select) -> BoolResult {
    if !body.session_id.as_str().starts_with("ses") {
        return Err(ApiError::bad_payload(format!(
            "`{}` is not an identifier of a session: those begin with `ses`",
            body.session_id
        )));
    }
    agent.session(&body.session_id)?;
    tell(agent, SELECT, json!(body)).await
}

/// One of the four kinds of event, validated as in the routes above.
#[derive(Deserialize)]
#[serde(tag = "type", content = "properties")]
enum Published {
    #[serde(rename = "tui.prompt.append")]
    Append(Append),
    #[serde(rename = "tui.command.execute")]
    Execute(Command),
    #[serde(rename = "tui.toast.show")]
    Toast(Toast),
    #[serde(rename = "tui.session.select")]
    Select(Select),
}

async fn publish(
    State(agent): State<Agent>,
    By(by): By,
    Json(body): Json<Published>,
) -> BoolResult {
    match body {
        Published::Append(body) => tell(&agent, APPEND, json!(body)).await,
        Published::Execute(body) => execute(&agent, &body.command, &by).await,
        Published::Toast(body) => tell(&agent, TOAST, json!(body)).await,
        Published::Select(body) => show(&agent, body).await,
    }
}

/// Waits for a request to the terminal interface. All of them are events by now, in OpenCode too: a client that still polls
/// here waits until it disconnects.
async fn next() -> Json<Value> {
    std::future::pending().await
}

/// Accepts the response of such a client.
async fn response(Json(_): Json<Value>) -> Json<bool> {
    Json(true)
}
