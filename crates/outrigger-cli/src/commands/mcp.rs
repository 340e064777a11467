//! `outrigger mcp`.

use outrigger_agent::{
    Agent, AgentError, AllowedServers, AuthState, Boot, McpError, McpPlacement, McpState,
    McpStatus, ProjectLocation,
};
use outrigger_config::claude::ClaudeServer;
use serde_json::{Map, Value, json};

use crate::args::{Global, McpAdd, McpCommand};
use crate::commands::mcp_secrets::Secrets;
use crate::commands::settings_file::SettingsFile;
use crate::exit;
use crate::failure::Failure;
use crate::terminal::progress::Line;
use crate::terminal::{self, err, one_line, out};

/// Runs the command.
pub(crate) async fn mcp(global: &Global, command: McpCommand) -> Result<u8, Failure> {
    match command {
        McpCommand::List { json } => list(global, json).await,
        McpCommand::Add(args) => add(global, &args),
        McpCommand::Remove { name } => remove(global, &name),
        McpCommand::Auth { name } => auth(global, name).await,
        McpCommand::Logout { name } => logout(global, &name),
        McpCommand::Allow { name, revoke } => allow(global, name.as_deref(), revoke).await,
        McpCommand::Debug { name } => debug(global, &name).await,
        // It handles signals itself; see `dispatch`.
        McpCommand::Serve(_) => Ok(0),
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

/// Returns the word for a state.
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

/// Returns where a server starts, and why.
pub(crate) fn starts(placement: &McpPlacement) -> String {
    format!(
        "{}, in {}: {}",
        placement.sandbox, placement.folder, placement.reason
    )
}

fn entry(status: &McpStatus, auth: Option<AuthState>) -> String {
    let mut text = format!(
        "{:<12} {}",
        word(status.state),
        terminal::name(&status.name)
    );
    if !status.transport.is_empty() {
        text.push_str(&format!("  {}", terminal::name(status.transport)));
    }
    if auth == Some(AuthState::Authenticated) {
        text.push_str("  logged in");
    }
    text.push('\n');
    let mut line = |name: &str, value: &str| {
        text.push_str(&terminal::entry(&format!("             {name:<6} {value}")));
    };
    if let Some(server) = &status.server {
        line("server", server);
    }
    if !status.tools.is_empty() {
        line("tools", &status.tools.join(", "));
    }
    if let Some(placement) = &status.placement {
        line("starts", &starts(placement));
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

/// Logs in to a server; without a name, lists the logins.
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
            text.push_str(&one_line(format_args!("{state:<14} {}", status.name)));
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
        out(&one_line(format_args!(
            "logged in at {name}: {} tools",
            status.tools.len()
        )));
        return Ok(0);
    }
    out(&entry(&status, None));
    Ok(exit::FAILED)
}

/// Removes a login. The server may be gone from the configuration.
fn logout(global: &Global, name: &str) -> Result<u8, Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    let removed = outrigger_agent::mcp_tokens(&boot.folders)
        .remove(name)
        .map_err(|error| {
            Failure::new(
                "mcp.login",
                format!("cannot remove the login: {error}"),
                None,
            )
        })?;
    if removed {
        out(&one_line(format_args!("logged out of {name}")));
        return Ok(0);
    }
    Err(Failure::new(
        "mcp.no_login",
        format!("there is no login for `{name}`"),
        Some("`outrigger mcp auth` shows where one is logged in".to_owned()),
    ))
}

/// Allows a server of an `.mcp.json` or of a skill, or revokes that. Shows what it runs.
async fn allow(global: &Global, name: Option<&str>, revoke: bool) -> Result<u8, Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    let folders = boot.folders.clone();
    let allowed = AllowedServers::new(&folders);
    let config = boot.load(&ProjectLocation::find(&boot.directory))?;
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
            out(&one_line(format_args!(
                "{word:<12} {name}  {}",
                server.written
            )));
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
        out(&one_line(format_args!("{name} is not allowed any more")));
    } else {
        allowed.allow(server).map_err(failed)?;
        out(&one_line(format_args!(
            "{name} is allowed: {}",
            server.written
        )));
    }
    Ok(0)
}

/// Returns the servers that need approval: those of `.mcp.json`, and those of skills, which plugins may also contribute.
async fn waiting(boot: Boot, name: Option<&str>) -> Result<Vec<(String, ClaudeServer)>, Failure> {
    let (servers, problems) = boot
        .load(&ProjectLocation::find(&boot.directory))?
        .claude_servers();
    if let Some(problem) = problems.first() {
        return Err(Failure::new("mcp.allow", problem.to_string(), None));
    }
    let servers = servers
        .into_iter()
        .map(|server| (server.name.clone(), server));
    // Names of servers of skills contain both names.
    if name.is_some_and(|name| !name.contains(':')) {
        return Ok(servers.collect());
    }
    let agent = Agent::boot(boot).await?;
    let of_skills = agent.skill_servers_to_allow();
    agent.shutdown().await;
    Ok(servers.chain(of_skills).collect())
}

/// Shows everything known about a server, including the first step of a login.
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
            text.push_str(&one_line(format_args!("             login  at {address}")));
        }
        Some(Err(error)) => {
            text.push_str(&terminal::entry(&format!("             login  {error}")))
        }
        None => {}
    }
    out(&text);
    Ok(0)
}

/// Adds a server to an `opencode.json`.
fn add(global: &Global, add: &McpAdd) -> Result<u8, Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    let mut file = SettingsFile::load(&boot, add.global)?;
    let mut entry = made(add)?;
    if !add.force && file.has(&["mcp", &add.name])? {
        return Err(Failure::new(
            "mcp.add",
            format!("{}: there is a server `{}` already", file.name(), add.name),
            Some("--force replaces it".to_owned()),
        ));
    }
    let secrets = Secrets::of(&boot.folders.data, &file.name(), &add.name);
    let mut taken = Vec::new();
    for key in ["headers", "environment"] {
        if let Some(pairs) = entry.get_mut(key).and_then(Value::as_object_mut) {
            let of_key = secrets.take(pairs).map_err(|error| {
                let message = format!("a secret cannot be kept in a file: {error}");
                Failure::new("mcp.add", message, None)
            })?;
            taken.extend(of_key);
        }
    }
    file.remove(&["mcp", &add.name])?;
    file.merge(&json!({ "mcp": { &add.name: entry } }))?;
    file.write(&boot)?;
    out(&one_line(format_args!(
        "added {} to {}",
        add.name,
        file.name()
    )));
    if !taken.is_empty() {
        err(&one_line(format_args!(
            "warning: {} is stored in a private file in {}, not in {}; use {{env:NAME}} in settings that others share",
            taken.join(", "),
            secrets.folder().display(),
            file.name()
        )));
    }
    Ok(0)
}

/// Removes a server from the project's `opencode.json`, or from the user's if the project's does not have it.
fn remove(global: &Global, name: &str) -> Result<u8, Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    for of_user in [false, true] {
        let mut file = SettingsFile::load(&boot, of_user)?;
        if file.remove(&["mcp", name])? {
            file.write(&boot)?;
            let removed = Secrets::of(&boot.folders.data, &file.name(), name).remove();
            removed.map_err(|error| {
                let message = format!("cannot remove its secrets: {error}");
                Failure::new("mcp.remove", message, None)
            })?;
            out(&one_line(format_args!(
                "removed {name} from {}",
                file.name()
            )));
            return Ok(0);
        }
    }
    Err(Failure::new(
        "mcp.unknown",
        format!("no opencode.json here has a server `{name}`"),
        Some("`outrigger mcp list` shows the servers".to_owned()),
    ))
}

/// Creates the entry from the options.
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
            "give either --url URL or a command after `--`: outrigger mcp add NAME -- npx -y some-server",
        )),
    }
}
