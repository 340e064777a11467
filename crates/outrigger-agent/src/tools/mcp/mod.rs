//! MCP servers of an agent: started with it, with their current tools and logins.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_config::Loaded;
use outrigger_config::skills::Skill;
use outrigger_mcp::{IdentityProvider, LoginSettings, McpServers, State, Status, TokenStore};
use outrigger_mcp_tools::{McpHost, McpPrompt, SkillServers, register, with_claude};
use outrigger_prompt::command::CommandInfo;
use outrigger_protocol::event::{CustomEvent, Event};
use outrigger_sandbox::{SandboxOverride, Spawner};
use outrigger_store::Store;
use outrigger_tools::ToolRuntime;
use outrigger_workspace::{Folders, ProjectLocation};
use serde_json::Value;

mod login;
mod sampling;
mod skill_origin;

use crate::boot::options::Boot;
use crate::boot::start::{Helpers, Owner};
use crate::error::AgentError;
use crate::state::{Agent, AgentState};

impl McpHost for AgentState {
    fn mcp(&self) -> &McpServers {
        &self.tools.mcp
    }

    fn skill_servers(&self) -> &SkillServers {
        &self.tools.skill_servers
    }

    fn runtime(&self) -> &ToolRuntime {
        &self.tools.runtime
    }

    fn config(&self) -> &Loaded {
        &self.config
    }

    fn folders(&self) -> &Folders {
        &self.project.folders
    }

    fn options(&self) -> outrigger_mcp::Options {
        let sandboxed = outrigger_permissions::sandbox_policy::spawner(
            &self.processes.spawner,
            &self.config,
            &self.project.location,
            &self.project.folders,
            self.permissions.workspace_trust.as_ref(),
        );
        outrigger_mcp::Options {
            launcher: Some(Arc::clone(&self.tools.server_launcher) as _),
            tokens: watched_tokens(&self.project.folders, &self.store),
            ..options(
                self.config.env(),
                &self.config,
                &self.project.location,
                &sandboxed,
                &self.project.folders,
            )
        }
    }

    fn is_of_plugin(&self, skill: &Skill) -> bool {
        self.is_skill_of_plugin(skill)
    }

    fn sandbox_of_skill<'a>(
        &'a self,
        skill: &'a Skill,
    ) -> BoxFuture<'a, Result<Option<SandboxOverride>, String>> {
        Box::pin(self.plugin_sandbox_of_skill(skill))
    }

    fn is_of_project(&self, server: &str) -> bool {
        let plugins = &self.plugins.host;
        plugins.is_configured_by_project("mcp", server)
            || self.tools.server_launcher.is_of_project(server)
    }

    fn registered(&self, tool: &str) {
        let settings = &self.config.settings.tool_execution;
        outrigger_contributions::grants::narrow(&self.tools.runtime, tool, settings);
    }
}

/// Returns the agent as the `outrigger-mcp-tools` crate sees it.
pub(crate) fn host(state: &Arc<AgentState>) -> Arc<dyn McpHost> {
    Arc::clone(state) as Arc<dyn McpHost>
}

impl Agent {
    /// Returns the MCP servers with their status.
    #[must_use]
    pub fn mcp(&self) -> Vec<Status> {
        let mut all = self.state.tools.mcp.status();
        for status in &mut all {
            if let Some(why) = self.state.tools.unstarted_mcp.get(&status.name)
                && status.state == State::Disabled
            {
                status.code = Some("mcp.not_allowed");
                status.hint = Some(why.clone());
            }
        }
        all
    }
}

/// Starts the configured servers in the background, while plugins load.
pub(crate) fn start(boot: &Boot, owner: &Owner<'_>, helpers: &Helpers) -> McpServers {
    let options = outrigger_mcp::Options {
        launcher: Some(Arc::clone(&helpers.launcher) as _),
        tokens: watched_tokens(&boot.folders, owner.store),
        ..options(
            &boot.env,
            owner.config,
            owner.location,
            &helpers.spawner,
            &boot.folders,
        )
    };
    McpServers::start(&with_claude(owner.config, &boot.folders).0, options)
}

fn options(
    env: &BTreeMap<String, String>,
    config: &Loaded,
    location: &ProjectLocation,
    sandboxed: &Spawner,
    folders: &Folders,
) -> outrigger_mcp::Options {
    let env = env
        .iter()
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    outrigger_mcp::Options {
        spawner: sandboxed.clone(),
        directory: location.directory.clone(),
        env: outrigger_sandbox::env::allow_list_of(env, &[]),
        call_timeout: call_timeout(config),
        launcher: None,
        tokens: tokens(folders),
        logins: logins(config, folders),
    }
}

/// Returns the user's login settings, by `[mcp.NAME]`. Paths are relative to the user's settings folder.
fn logins(config: &Loaded, folders: &Folders) -> BTreeMap<String, LoginSettings> {
    let file = |path: &String| match path.strip_prefix("~/") {
        Some(rest) => folders.home.join(rest),
        None => folders.config.join(path),
    };
    let servers = config.settings.tool_execution.mcp.iter();
    servers
        .map(|(name, server)| {
            let provider = server.identity_provider.as_ref();
            let settings = LoginSettings {
                url: server.url.clone(),
                issuer: server.issuer.clone(),
                client_metadata_url: server.client_metadata_url.clone(),
                client_credentials: server.client_credentials,
                private_key_file: server.private_key_file.as_ref().map(file),
                identity_provider: provider.map(|provider| IdentityProvider {
                    token_endpoint: provider.token_endpoint.clone(),
                    client_id: provider.client_id.clone(),
                    id_token_file: file(&provider.id_token_file),
                }),
            };
            (name.clone(), settings)
        })
        .collect()
}

/// Returns `experimental.mcp_timeout`, the default for servers that set none.
pub(crate) fn call_timeout(config: &Loaded) -> Option<Duration> {
    let timeout = config.config.experimental.get("mcp_timeout");
    timeout.and_then(Value::as_u64).map(Duration::from_millis)
}

/// Returns the store of MCP login tokens, under OpenCode's file name in Outrigger's folder.
#[must_use]
pub fn tokens(folders: &Folders) -> TokenStore {
    TokenStore::new(folders.data.join("mcp-auth.json"))
}

/// Like [`tokens`], but keeps the tokens out of the audit.
fn watched_tokens(folders: &Folders, store: &Store) -> TokenStore {
    tokens(folders).watched(outrigger_audit::credential_watcher(store))
}

/// Waits for the servers, registers their tools after the existing ones, and follows changes: servers that start late
/// and changed lists of tools.
pub(crate) async fn bind(state: &Arc<AgentState>) {
    state.tools.mcp.ready().await;
    let (owner, mut changes) = (Arc::downgrade(state), state.tools.mcp.changes());
    register(&host(state));
    let mut before = offered(&state.tools.mcp);
    tokio::spawn(async move {
        while changes.changed().await.is_ok() {
            let Some(state) = owner.upgrade() else { return };
            register(&host(&state));
            let after = offered(&state.tools.mcp);
            publish_changes(&state, &before, &after).await;
            before = after;
        }
    });
}

/// Tools of the connected servers and of those that have ended.
type Offered = BTreeMap<String, (State, Vec<String>)>;

fn offered(servers: &McpServers) -> Offered {
    let status = servers.status().into_iter();
    status
        .filter(|status| matches!(status.state, State::Connected | State::Failed))
        .map(|status| (status.name, (status.state, status.tools)))
        .collect()
}

/// Publishes `mcp.tools.changed`, as in OpenCode: for servers whose tools changed while connected, or that ended.
async fn publish_changes(state: &AgentState, before: &Offered, after: &Offered) {
    let changed = before
        .iter()
        .filter(|(_, (state, _))| *state == State::Connected)
        .filter(|(name, was)| after.get(*name).is_some_and(|is| is != *was));
    for (server, _) in changed {
        let mut properties = outrigger_protocol::Object::new();
        properties.insert("server".to_owned(), server.as_str().into());
        let event = Event::Custom(CustomEvent {
            depth: 0,
            kind: "mcp.tools.changed".to_owned(),
            properties,
        });
        if let Err(error) = state.commit(Vec::new(), vec![event]).await {
            tracing::warn!("[mcp] {error}");
        }
    }
}

impl Agent {
    /// Returns the prompts of all MCP servers, by their command names.
    pub async fn mcp_prompts(&self) -> Vec<McpPrompt> {
        outrigger_mcp_tools::prompts::prompts(&self.state.tools.mcp).await
    }

    /// The command of that name: configured, or a prompt of an MCP server, whose text is not fetched yet.
    ///
    /// # Errors
    /// [`AgentError::NoCommand`].
    pub async fn find_command(&self, name: &str) -> Result<CommandInfo, AgentError> {
        if let Some(info) = self.state.catalog.commands.get(name) {
            return Ok(info.clone());
        }
        let found = outrigger_mcp_tools::prompts::describe(&self.state.tools.mcp, name).await;
        found.ok_or_else(|| self.no_command(name))
    }

    pub(crate) fn no_command(&self, name: &str) -> AgentError {
        AgentError::NoCommand {
            name: name.to_owned(),
            known: self.state.catalog.commands.keys().cloned().collect(),
        }
    }
}
