//! `outrigger mcp`.

use std::path::PathBuf;

use outrigger_agent::{
    Agent, AgentError, AllowedServers, AuthState, Boot, McpError, McpPlacement, McpState,
    McpStatus, Place, servers_of_skills,
};
use outrigger_config::claude::ClaudeServer;
use serde_json::{Map, Value, json};

use crate::args::{Global, McpAdd, McpCommand};
use crate::exit;
use crate::failure::Failure;
use crate::terminal::out;
use crate::terminal::progress::Line;

/// Runs the command.
pub(crate) async fn mcp(global: &Global, command: McpCommand) -> Result<u8, Failure> {
    match command {
        McpCommand::List { json } => list(global, json).await,
        McpCommand::Add(add) => write(global, &add),
        McpCommand::Auth { name } => auth(global, name).await,
        McpCommand::Logout { name } => logout(global, &name),
        McpCommand::Allow { name, revoke } => allow(global, name.as_deref(), revoke).await,
        McpCommand::Debug { name } => debug(global, &name).await,
    }
}

async fn list(global: &Global, json: bool) -> Result<u8, Failure> {
    let agent = Agent::boot(crate::boot::boot(global, &Line::new())?).await?;
    let status = agent.mcp();
    let text = if json {
        format!(
            "{}\n",
            serde_json::to_string_pretty(&status).unwrap_or_default()
        )
    } else if status.is_empty() {
        "no MCP servers (see `mcp` in opencode.json, or `outrigger mcp add`)\n".to_owned()
    } else {
        status
            .iter()
            .map(|status| entry(status, agent.mcp_auth_state(&status.name)))
            .collect()
    };
    agent.shutdown().await;
    out(&text);
    Ok(0)
}

/// The word for a state.
pub(crate) fn word(state: McpState) -> &'static str {
    match state {
        McpState::Disabled => "disabled",
        McpState::Starting => "starting",
        McpState::Connected => "connected",
        McpState::Failed => "failed",
        McpState::NeedsAuth => "needs login",
        McpState::NeedsClientRegistration => "needs client",
    }
}

/// Where a server starts, and why.
pub(crate) fn starts(place: &McpPlacement) -> String {
    format!("{}, in {}: {}", place.sandbox, place.folder, place.reason)
}

fn entry(status: &McpStatus, auth: Option<AuthState>) -> String {
    let mut text = format!("{:<12} {}", word(status.state), status.name);
    if !status.transport.is_empty() {
        text.push_str(&format!("  {}", status.transport));
    }
    if auth == Some(AuthState::Authenticated) {
        text.push_str("  logged in");
    }
    text.push('\n');
    let mut line = |name: &str, value: &str| {
        text.push_str(&format!("             {name:<6} {value}\n"));
    };
    if let Some(server) = &status.server {
        line("server", server);
    }
    if !status.tools.is_empty() {
        line("tools", &status.tools.join(", "));
    }
    if let Some(place) = &status.placement {
        line("starts", &starts(place));
    }
    if let Some(error) = &status.error {
        let code = status.code.unwrap_or_default();
        line("cause", &format!("{error} [{code}]"));
    }
    if let Some(hint) = &status.hint {
        line("hint", hint);
    }
    text
}

/// Logs in at a server; without a name, says where one is logged in.
async fn auth(global: &Global, name: Option<String>) -> Result<u8, Failure> {
    let agent = Agent::boot(crate::boot::boot(global, &Line::new())?).await?;
    let Some(name) = name else {
        let mut text = String::new();
        for status in agent.mcp() {
            let state = match agent.mcp_auth_state(&status.name) {
                None => continue,
                Some(AuthState::Authenticated) => "logged in",
                Some(AuthState::Expired) => "expired",
                Some(AuthState::NotAuthenticated) => "not logged in",
            };
            text.push_str(&format!("{state:<14} {}\n", status.name));
        }
        agent.shutdown().await;
        if text.is_empty() {
            text = "no remote MCP server that one could log in at\n".to_owned();
        }
        out(&text);
        return Ok(0);
    };
    let result = agent
        .mcp_authenticate(&name, |url| {
            out(&format!("Log in here, then come back:\n\n  {url}\n\n"));
        })
        .await;
    agent.shutdown().await;
    let status = result?;
    if status.state == McpState::Connected {
        out(&format!(
            "logged in at {name}: {} tools\n",
            status.tools.len()
        ));
        return Ok(0);
    }
    out(&entry(&status, None));
    Ok(exit::FAILED)
}

/// Forgets a login. The server need not be configured any more.
fn logout(global: &Global, name: &str) -> Result<u8, Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    let removed = outrigger_agent::mcp_tokens(&boot.folders).remove(name);
    let removed = removed.map_err(|error| {
        Failure::new(
            "mcp.login",
            format!("the login cannot be removed: {error}"),
            None,
        )
    })?;
    if removed {
        out(&format!("logged out of {name}\n"));
        return Ok(0);
    }
    Err(Failure::new(
        "mcp.no_login",
        format!("there is no login for `{name}`"),
        Some("`outrigger mcp auth` shows where one is logged in".to_owned()),
    ))
}

/// Allows a server of an `.mcp.json` or of a skill, or takes that back. What it runs is shown, so that it is known what is
/// allowed.
async fn allow(global: &Global, name: Option<&str>, revoke: bool) -> Result<u8, Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    let folders = boot.folders.clone();
    let allowed = AllowedServers::new(&folders);
    let config = boot.load(&Place::find(&boot.directory))?;
    let servers = waiting(boot, name).await?;
    let Some(name) = name else {
        if servers.is_empty() {
            out("no servers in a .mcp.json or a skill of this project\n");
        }
        for (name, server) in &servers {
            let word = if allowed.holds(server) || config.lets_server(server) {
                "allowed"
            } else {
                "not allowed"
            };
            out(&format!("{word:<12} {name}  {}\n", server.written));
        }
        return Ok(0);
    };
    let Some((_, server)) = servers.iter().find(|(known, _)| known == name) else {
        return Err(Failure::new(
            "mcp.unknown",
            format!("no .mcp.json or skill of this project has a server `{name}`"),
            Some("`outrigger mcp allow` shows those that there are".to_owned()),
        ));
    };
    let failed = |error: std::io::Error| {
        Failure::new("mcp.allow", format!("it cannot be kept: {error}"), None)
    };
    if revoke {
        allowed.revoke(server).map_err(failed)?;
        out(&format!("{name} is not allowed any more\n"));
    } else {
        allowed.allow(server).map_err(failed)?;
        out(&format!("{name} is allowed: {}\n", server.written));
    }
    Ok(0)
}

/// The servers that have to be allowed: those of `.mcp.json`, and those of skills, which plugins may bring too.
async fn waiting(boot: Boot, name: Option<&str>) -> Result<Vec<(String, ClaudeServer)>, Failure> {
    let (servers, problems) = boot.load(&Place::find(&boot.directory))?.claude_servers();
    if let Some(problem) = problems.first() {
        return Err(Failure::new("mcp.allow", problem.to_string(), None));
    }
    let servers = servers
        .into_iter()
        .map(|server| (server.name.clone(), server));
    // Those of skills have both names in theirs.
    if name.is_some_and(|name| !name.contains(':')) {
        return Ok(servers.collect());
    }
    let agent = Agent::boot(boot).await?;
    let of_skills = servers_of_skills(agent.skills(), agent.config(), agent.folders());
    agent.shutdown().await;
    Ok(servers.chain(of_skills).collect())
}

/// Shows what is known of one server, and what a login there would begin with.
async fn debug(global: &Global, name: &str) -> Result<u8, Failure> {
    let agent = Agent::boot(crate::boot::boot(global, &Line::new())?).await?;
    let found = agent.mcp().into_iter().find(|status| status.name == name);
    let Some(status) = found else {
        agent.shutdown().await;
        let server = name.to_owned();
        return Err(AgentError::from(McpError::Unknown { server }).into());
    };
    let state = agent.mcp_auth_state(name);
    let mut text = entry(&status, state);
    let begun = match state {
        Some(_) => Some(agent.mcp_start_auth(name).await),
        None => None,
    };
    agent.shutdown().await;
    match begun {
        Some(Ok(begun)) if begun.authorization_url.is_empty() => {
            text.push_str("             login  not wanted\n");
        }
        Some(Ok(begun)) => {
            let address = begun
                .authorization_url
                .split('?')
                .next()
                .unwrap_or_default();
            text.push_str(&format!("             login  at {address}\n"));
        }
        Some(Err(error)) => text.push_str(&format!("             login  {error}\n")),
        None => {}
    }
    out(&text);
    Ok(0)
}

/// Writes a server into an `opencode.json`.
fn write(global: &Global, add: &McpAdd) -> Result<u8, Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    let path = if add.global {
        boot.folders.config.join("opencode/opencode.json")
    } else {
        Place::find(&boot.directory).worktree.join("opencode.json")
    };
    let entry = made(add)?;
    let wrong = |reason: String| {
        Failure::new(
            "mcp.add",
            format!("{}: {reason}", path.display()),
            Some(format!("write `mcp.{}` into it by hand", add.name)),
        )
    };
    // A commented one is left to people: writing it anew would lose the comments.
    if path.with_extension("jsonc").exists() {
        return Err(wrong("there is an opencode.jsonc beside it".to_owned()));
    }
    let mut whole: Value = match outrigger_files::read_to_string(&path, outrigger_files::SETTINGS) {
        Ok(text) => serde_json::from_str(&text)
            .map_err(|error| wrong(format!("it has comments or is not valid JSON ({error})")))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => json!({}),
        Err(error) => return Err(wrong(error.to_string())),
    };
    let servers = whole
        .as_object_mut()
        .map(|fields| fields.entry("mcp").or_insert_with(|| json!({})))
        .and_then(Value::as_object_mut);
    let Some(servers) = servers else {
        return Err(wrong("it or its `mcp` is no object".to_owned()));
    };
    if servers.contains_key(&add.name) && !add.force {
        return Err(wrong(format!(
            "there is a server `{}` already; --force replaces it",
            add.name
        )));
    }
    servers.insert(add.name.clone(), entry.clone());
    store(&path, &whole).map_err(|error| wrong(error.to_string()))?;
    out(&format!("{} is in {}\n", add.name, path.display()));
    Ok(0)
}

fn store(path: &PathBuf, whole: &Value) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let text = serde_json::to_string_pretty(whole)?;
    // In one piece: a configuration that was cut off would keep both programs from starting.
    let written = path.with_extension("json.new");
    std::fs::write(&written, format!("{text}\n"))?;
    std::fs::rename(&written, path)
}

/// The entry that the options describe.
fn made(add: &McpAdd) -> Result<Value, Failure> {
    let usage = |text: &str| Failure::usage(text, None);
    let pairs = |list: &[String]| -> Result<Map<String, Value>, Failure> {
        list.iter()
            .map(|pair| match pair.split_once('=') {
                Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.into())),
                _ => Err(usage(&format!("`{pair}` must be NAME=VALUE"))),
            })
            .collect()
    };
    match (&add.url, add.command.is_empty()) {
        (Some(url), true) => {
            if !add.env.is_empty() {
                return Err(usage("--env is for local servers"));
            }
            let mut entry = json!({"type": "remote", "url": url});
            let headers = pairs(&add.header)?;
            if !headers.is_empty() {
                entry["headers"] = Value::Object(headers);
            }
            Ok(entry)
        }
        (None, false) => {
            if !add.header.is_empty() {
                return Err(usage("--header is for remote servers"));
            }
            let mut entry = json!({"type": "local", "command": add.command});
            let environment = pairs(&add.env)?;
            if !environment.is_empty() {
                entry["environment"] = Value::Object(environment);
            }
            Ok(entry)
        }
        _ => Err(usage(
            "say either --url URL, or a command behind `--`: outrigger mcp add NAME -- npx -y some-server",
        )),
    }
}
