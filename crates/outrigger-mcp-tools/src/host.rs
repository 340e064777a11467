//! The owner of the servers.

use futures_util::future::BoxFuture;
use outrigger_config::Loaded;
use outrigger_config::skills::Skill;
use outrigger_mcp::{McpServers, Options};
use outrigger_sandbox::SandboxOverride;
use outrigger_tools::ToolRuntime;
use outrigger_workspace::Folders;

use crate::skill_servers::SkillServers;

/// The owner of the servers and of the runtime for their tools. Implemented by the agent.
pub trait McpHost: Send + Sync {
    /// Returns the configured servers.
    fn mcp(&self) -> &McpServers;
    /// Returns the servers of skills.
    fn skill_servers(&self) -> &SkillServers;
    /// Returns the runtime in which tools are registered.
    fn runtime(&self) -> &ToolRuntime;
    /// Returns the current configuration.
    fn config(&self) -> &Loaded;
    /// Returns the user's folders.
    fn folders(&self) -> &Folders;
    /// Returns the environment in which servers are started.
    fn options(&self) -> Options;
    /// Returns whether a plugin contributed a skill: it lies in the plugin's folder, or in one that its `config` hook named.
    fn is_of_plugin(&self, skill: &Skill) -> bool;
    /// Returns the sandbox of what a skill of a plugin starts; `None` for any other skill, and if plugins are not sandboxed.
    ///
    /// # Errors
    /// Why there is none. Nothing of the skill must be started then.
    fn sandbox_of_skill<'a>(
        &'a self,
        skill: &'a Skill,
    ) -> BoxFuture<'a, Result<Option<SandboxOverride>, String>>;
    /// Returns whether a project has a part in a server: its files or a plugin of it added or changed the entry.
    fn is_of_project(&self, server: &str) -> bool;
    /// Reports a registered tool, so that the user's settings are applied to it.
    fn registered(&self, tool: &str);
}
