//! MCP servers of skills (requirement B13): started when a session loads the skill, for that session only, and stopped with
//! it or when idle. The author of the skill chose the program, so servers of project skills and fetched skills need the
//! user's approval, like those of `.mcp.json`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use outrigger_config::Loaded;
use outrigger_config::claude::ClaudeServer;
use outrigger_config::skills::Skill;
use outrigger_mcp::{McpError, McpServers, ServerTool, tool_name};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use outrigger_sandbox::process_time::{self, Instant};
use outrigger_stdx::sync::lock;
use outrigger_tools::{PermissionAsk, Tool, ToolContext, ToolError};
use outrigger_workspace::Folders;
use serde_json::{Map, Value};

use crate::allowed::AllowedServers;
use crate::host::McpHost;
use crate::launch;
use crate::register::is_ours;
use crate::skill_servers::{Calling, Held, SOURCE, is_of_skill};
use crate::tool::{McpTool, answered_as, call, declared};

const OF_ANOTHER: &str = "another skill of this session has a server of that name";
/// Maximum wait for a server's start within a call, in addition to the call's own.
const START: Duration = Duration::from_secs(30);

/// Returns the servers of skills that need approval, by `SKILL:SERVER`. `is_of_plugin`: whether a plugin contributed a skill.
pub fn servers_of_skills(
    skills: &[Skill],
    config: &Loaded,
    folders: &Folders,
    is_of_plugin: impl Fn(&Skill) -> bool,
) -> Vec<(String, ClaudeServer)> {
    skills
        .iter()
        .filter(|skill| is_of_plugin(skill) || is_foreign(skill, folders))
        .flat_map(|skill| {
            let (servers, _) = config.skill_servers(skill);
            let named = |server: ClaudeServer| (format!("{}:{}", skill.name, server.name), server);
            servers.into_iter().map(named)
        })
        .collect()
}

/// Returns whether a skill is not in a folder of the user's, so that its servers need approval.
fn is_foreign(skill: &Skill, folders: &Folders) -> bool {
    let own = users_skill_folders(folders);
    !own.iter().any(|dir| skill.dir.starts_with(dir))
}

/// Returns the folders of the user's own skills. A plugin's folder may lie in one of them.
#[must_use]
pub fn users_skill_folders(folders: &Folders) -> [PathBuf; 4] {
    let home = &folders.home;
    [
        home.join(".claude"),
        home.join(".agents"),
        home.join(".opencode"),
        folders.config.join("opencode"),
    ]
}

/// Starts the servers of a skill that a session has loaded, and returns the result as text; `None` for a skill without
/// any.
pub async fn start_skill_servers(
    host: &Arc<dyn McpHost>,
    session: &SessionId,
    skill: &Skill,
) -> Option<String> {
    let (servers, problems) = host.config().skill_servers(skill);
    if servers.is_empty() && problems.is_empty() {
        return None;
    }
    let held = host.skill_servers().entry(session);
    let mut failed: Vec<(String, String)> = Vec::new();
    for problem in problems {
        tracing::warn!("[mcp] {problem}");
        failed.push((skill.name.clone(), problem.to_string()));
    }
    let own = host.sandbox_of_skill(skill).await;
    let mut wanted = Vec::new();
    for server in servers {
        let sandboxed = own
            .as_ref()
            .map_err(|why| format!("it has no sandbox: {why}"));
        match sandboxed.and_then(|own| {
            if held.is_of_another(&server.name, &skill.dir, own.is_some()) {
                return Err(OF_ANOTHER.to_owned());
            }
            let entry = may_start(&**host, skill, &server, &held)?;
            held.sandbox(&server.name, &skill.dir, own.clone());
            Ok(entry)
        }) {
            Ok(entry) => wanted.push((server.name, entry)),
            Err(why) => {
                tracing::warn!("[mcp:{}] of the skill {}: {why}", server.name, skill.name);
                failed.push((server.name, why));
            }
        }
    }
    let _calling = Calling::begin(&held);
    let up = start_wanted(host, session, &held, wanted).await;
    Some(text(&up, &failed))
}

/// Returns the entry to start a server with, or why it is not started.
fn may_start(
    host: &dyn McpHost,
    skill: &Skill,
    server: &ClaudeServer,
    held: &Held,
) -> Result<Value, String> {
    let file = server.file.display();
    let entry = server
        .entry
        .clone()
        .map_err(|wrong| format!("{file}: {wrong}"))?;
    let entry = if host.config().is_of_project(skill) {
        launch::of_project(entry)
    } else {
        entry
    };
    if host
        .mcp()
        .status()
        .iter()
        .any(|known| known.name == server.name)
    {
        return Err("a server of that name is configured; its tools are used".to_owned());
    }
    if lock(&held.entries)
        .get(&server.name)
        .is_some_and(|other| *other != entry)
    {
        return Err(OF_ANOTHER.to_owned());
    }
    let allowed = AllowedServers::new(host.folders());
    if (host.is_of_plugin(skill) || is_foreign(skill, host.folders()))
        && !allowed.holds(server)
        && !host.config().lets_server(server)
    {
        return Err(format!(
            "{file} requests it; the user must review it and run `outrigger mcp allow {}:{}`",
            skill.name, server.name
        ));
    }
    Ok(entry)
}

/// Starts these servers, registers their tools, and returns for each its tools or why it is not connected.
async fn start_wanted(
    host: &Arc<dyn McpHost>,
    session: &SessionId,
    held: &Arc<Held>,
    wanted: Vec<(String, Value)>,
) -> Vec<(String, Result<Vec<ToolSpec>, String>)> {
    if wanted.is_empty() {
        return Vec::new();
    }
    lock(&held.entries).extend(wanted.iter().cloned());
    let mut live = held.live.lock().await;
    let fresh = live.is_none();
    let servers =
        live.get_or_insert_with(|| McpServers::start(&Map::new(), held.options(host.options())));
    let known = servers.status();
    let start = wanted.iter().map(|(name, entry)| {
        let there = known.iter().find(|status| status.name == *name).cloned();
        let up = there.filter(|status| status.error.is_none());
        let servers = &*servers;
        async move {
            match up {
                Some(status) => Ok(status),
                None => servers.add(name, entry).await,
            }
        }
    });
    let statuses = join_all(start).await;
    let tools = servers.tools();
    drop(live);
    if fresh {
        watch_idle(&**host, session, held);
    }
    let mut all = Vec::new();
    for ((name, _), status) in wanted.into_iter().zip(statuses) {
        let result = match status {
            Ok(status) => match status.error {
                Some(error) => Err(error),
                None => Ok(register_skill_tools(host, held, &name, &tools)),
            },
            Err(error) => Err(error.to_string()),
        };
        all.push((name, result));
    }
    all
}

fn register_skill_tools(
    host: &Arc<dyn McpHost>,
    held: &Held,
    server: &str,
    tools: &[ServerTool],
) -> Vec<ToolSpec> {
    let mut specs = Vec::new();
    for tool in tools.iter().filter(|tool| tool.server == server) {
        let tool = SkillTool::new(tool, Arc::downgrade(host));
        let name = tool.mcp.spec.name.clone();
        // A name that is in use keeps its meaning.
        let taken = host.runtime().spec(&name).filter(|spec| !is_of_skill(spec));
        let other = match taken {
            Some(other) => Some(other.source),
            None => is_ours(&name).then(|| "Outrigger".to_owned()),
        };
        if let Some(other) = other {
            tracing::warn!(
                "[mcp:{server}] its tool {name} is skipped: {other} has one of that name"
            );
            continue;
        }
        lock(&held.tools).insert(name, (server.to_owned(), tool.name.clone()));
        specs.push(tool.mcp.spec.clone());
        let lax = tool.lax();
        if let Err(error) = host.runtime().register(Arc::new(tool)) {
            tracing::warn!("[mcp:{server}] {error}; its arguments are not checked");
            if let Err(error) = host.runtime().register(Arc::new(lax)) {
                tracing::warn!("[mcp:{server}] {error}");
            }
        }
    }
    specs
}

/// Ends the processes of a session that has not used them for a while.
fn watch_idle(host: &dyn McpHost, session: &SessionId, held: &Arc<Held>) {
    let idle = Duration::from_millis(host.config().settings.tools.skill_server_idle_ms);
    let (held, session) = (Arc::downgrade(held), session.clone());
    tokio::spawn(async move {
        let mut pause = idle;
        loop {
            process_time::sleep(pause).await;
            let Some(held) = held.upgrade() else { return };
            match held.rest(idle).await {
                Some(left) => pause = left,
                None => {
                    tracing::debug!("[mcp] the servers of the skills of {session} are stopped");
                    return;
                }
            }
        }
    });
}

/// Returns the tool behind a name in a session; restarts its server if it was stopped.
async fn skill_tool(
    host: &dyn McpHost,
    session: &SessionId,
    name: &str,
) -> Result<(Arc<Held>, ServerTool), ToolError> {
    let gone = || ToolError::failed("The skill that has this tool is not loaded in this session.");
    let held = host.skill_servers().held(session).ok_or_else(gone)?;
    let (server, tool) = lock(&held.tools).get(name).cloned().ok_or_else(gone)?;
    *lock(&held.used) = Some(Instant::now());
    let mut live = held.live.lock().await;
    if live.is_none() {
        let entries = lock(&held.entries).clone();
        let servers = McpServers::start(&entries, held.options(host.options()));
        servers.ready().await;
        *live = Some(servers);
        watch_idle(host, session, &held);
    }
    let servers = live.as_ref().ok_or_else(gone)?;
    let found = servers
        .tools()
        .into_iter()
        .find(|known| known.server == server && known.name == tool);
    let why = || {
        let status = servers
            .status()
            .into_iter()
            .find(|status| status.name == server);
        let error = status.and_then(|status| status.error);
        ToolError::failed(
            error.unwrap_or_else(|| format!("The MCP server {server} has no tool {tool} now.")),
        )
    };
    let found = found.ok_or_else(why)?;
    drop(live);
    Ok((held, found))
}

/// Returns the text about the servers for the model, which follows the text of the skill.
fn text(up: &[(String, Result<Vec<ToolSpec>, String>)], failed: &[(String, String)]) -> String {
    let mut out = String::from("<skill_mcp_servers>");
    for (name, result) in up {
        match result {
            Ok(specs) => {
                let _ = write!(out, "\n  <server name=\"{name}\">");
                for spec in specs {
                    let first = spec.description.lines().next().unwrap_or_default();
                    let _ = write!(out, "\n    {}: {first}", spec.name);
                }
                out.push_str("\n  </server>");
            }
            Err(why) => {
                let _ = write!(
                    out,
                    "\n  <server name=\"{name}\">not started: {why}</server>"
                );
            }
        }
    }
    for (name, why) in failed {
        let _ = write!(
            out,
            "\n  <server name=\"{name}\">not started: {why}</server>"
        );
    }
    out.push_str("\n</skill_mcp_servers>");
    out
}

/// A tool of a skill's server, for all sessions.
#[derive(Clone)]
struct SkillTool {
    mcp: McpTool,
    /// Name at its server.
    name: String,
    host: Weak<dyn McpHost>,
}

impl SkillTool {
    fn new(tool: &ServerTool, host: Weak<dyn McpHost>) -> Self {
        let mut mcp = McpTool::new(tool.clone());
        mcp.spec.source = format!("{SOURCE}{}", tool.server);
        debug_assert_eq!(mcp.spec.name, tool_name(&tool.server, &tool.name));
        Self {
            mcp,
            name: tool.name.clone(),
            host,
        }
    }

    fn lax(&self) -> Self {
        Self {
            mcp: self.mcp.lax(),
            ..self.clone()
        }
    }
}

impl Tool for SkillTool {
    fn spec(&self) -> &ToolSpec {
        &self.mcp.spec
    }

    fn argument_schema(&self) -> &Value {
        self.mcp.argument_schema()
    }

    fn declares(&self) -> outrigger_protocol::descriptor::Declared {
        declared()
    }

    fn is_undeclared(&self) -> bool {
        self.mcp.is_undeclared()
    }

    fn permissions(
        &self,
        input: &Value,
        ctx: &ToolContext,
    ) -> Result<Vec<PermissionAsk>, ToolError> {
        self.mcp.permissions(input, ctx)
    }

    fn deadline(&self, input: &Value) -> Option<Duration> {
        Some(self.mcp.deadline(input)?.saturating_add(START))
    }

    fn read(&self, answer: &Value) -> Option<ToolOutput> {
        answered_as(answer)
    }

    fn run<'a>(
        &'a self,
        input: Value,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let closed = || McpError::Closed {
                server: self.mcp.tool.server.clone(),
                cause: "was stopped".to_owned(),
            };
            let host = self
                .host
                .upgrade()
                .ok_or_else(|| ToolError::failed(closed().to_string()))?;
            let name = &self.mcp.spec.name;
            let (held, tool) = skill_tool(&*host, &ctx.call.session_id, name).await?;
            let _calling = Calling::begin(&held);
            call(&tool, name, &input, ctx).await
        })
    }
}
