//! Routes without a session.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use outrigger_agent::{Agent, LogLine};
use serde_json::{Value, json};

use crate::access::author::By;
use crate::access::marks::FromPlugin;
use crate::error::ApiError;

pub(crate) fn general() -> Router<Agent> {
    Router::new()
        .route("/global/health", get(health))
        .route("/config", get(config))
        .route("/agent", get(agents))
        .route("/command", get(commands))
        .route("/skill", get(skills))
        .route("/path", get(path))
        .route("/log", post(log))
}

pub(crate) async fn health() -> Json<Value> {
    Json(outrigger_agent::health())
}

/// The merged configuration. Keys and tokens are taken out: a plugin that needs one is granted it, not handed all.
async fn config(State(agent): State<Agent>) -> Json<Value> {
    let mut value = agent.config().redacted();
    if let Some(fields) = value.as_object_mut() {
        fields.shift_remove("plugin_origins");
    }
    Json(value)
}

async fn agents(State(agent): State<Agent>) -> Json<Value> {
    let mut list: Vec<_> = agent.agents().values().collect();
    let default = agent.default_agent();
    let is_default = |info: &outrigger_agent::AgentInfo| Some(&info.name) == default.as_ref();
    // Plugins that contribute agents define their order; the default agent comes first.
    list.sort_by(|a, b| {
        a.order
            .unwrap_or(f64::MAX)
            .total_cmp(&b.order.unwrap_or(f64::MAX))
            .then_with(|| is_default(b).cmp(&is_default(a)))
            .then_with(|| a.name.cmp(&b.name))
    });
    Json(
        list.into_iter()
            .map(|info| {
                let mut shown = info.to_wire();
                shown["options"] = outrigger_config::redacted(&shown["options"]);
                shown
            })
            .collect(),
    )
}

async fn commands(
    State(agent): State<Agent>,
    from_plugin: Option<Extension<FromPlugin>>,
) -> Json<Value> {
    let entries = &agent.config().config.command;
    let subtask = |name: &str| entries.iter().find(|c| c.name == name)?.subtask;
    // OpenCode's order: bundled, those of the configuration in its order, prompts, skills.
    let (skills, mut others): (Vec<_>, Vec<_>) = agent
        .commands()
        .values()
        .partition(|command| command.source.word() == "skill");
    others.sort_by_key(|command| {
        let position = entries.iter().position(|entry| entry.name == command.name);
        position.map_or(0, |position| position + 1)
    });
    let list = others.into_iter().map(|command| {
        let source = command.source.word();
        let mut out = json!({
            "name": command.name, "source": source, "template": command.template, "hints": hints(&command.template),
            // Null if the file does not specify it, as in OpenCode.
            "agent": command.agent, "model": command.model, "subtask": subtask(&command.name),
        });
        if let Some(description) = &command.description {
            out["description"] = json!(description);
        }
        out
    });
    // The list of a server's prompts is a request to it with the user's login, which a plugin does not cause.
    let prompts = match from_plugin {
        Some(_) => Vec::new(),
        None => agent.mcp_prompts().await,
    };
    let prompts = prompts.iter().map(|prompt| {
        let hints: Vec<String> = (1..=prompt.arguments.len())
            .map(|n| format!("${n}"))
            .collect();
        // Its text is fetched on use.
        let mut out =
            json!({ "name": prompt.name, "source": "mcp", "template": "", "hints": hints });
        if let Some(description) = &prompt.description {
            out["description"] = json!(description);
        }
        out
    });
    let skills = skills.into_iter().map(skill_command);
    Json(list.chain(prompts).chain(skills).collect())
}

/// Returns a skill as a command, which has no hints in OpenCode and no choices.
fn skill_command(command: &outrigger_agent::CommandInfo) -> Value {
    let mut out = json!({
        "name": command.name, "source": command.source.word(), "template": command.template, "hints": [],
    });
    if let Some(description) = &command.description {
        out["description"] = json!(description);
    }
    out
}

/// Returns the placeholders of a template, for clients that show what to type: `$1` … in order, then `$ARGUMENTS`.
fn hints(template: &str) -> Vec<String> {
    let numbers: BTreeSet<u32> = template
        .split('$')
        .skip(1)
        .filter_map(|rest| {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u32>().ok()
        })
        .collect();
    let mut hints: Vec<String> = numbers.into_iter().map(|n| format!("${n}")).collect();
    if template.contains("$ARGUMENTS") {
        hints.push("$ARGUMENTS".to_owned());
    }
    hints
}

async fn skills(State(agent): State<Agent>) -> Json<Value> {
    let list = agent.skills().iter().map(|skill| {
        let mut out =
            json!({ "name": skill.name, "location": skill.location, "content": skill.content });
        if let (Some(fields), Some(text)) = (out.as_object_mut(), &skill.description) {
            fields.insert("description".into(), json!(text));
        }
        out
    });
    Json(list.collect())
}

async fn path(State(agent): State<Agent>) -> Json<Value> {
    let location = agent.location();
    let folders = agent.folders();
    Json(json!({
        "home": folders.home, "state": folders.data, "config": folders.config.join("opencode"),
        "worktree": location.worktree, "directory": location.directory,
    }))
}

async fn log(By(by): By, Json(line): Json<LogLine>) -> Result<Json<bool>, ApiError> {
    let plugin = by.plugin_id();
    line.write(plugin.as_ref()).map_err(ApiError::bad_request)?;
    Ok(Json(true))
}
