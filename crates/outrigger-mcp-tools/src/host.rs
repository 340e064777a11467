//! The owner of the servers.

use outrigger_config::Loaded;
use outrigger_mcp::{McpServers, Options};
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
    /// Reports a registered tool, so that the user's settings are applied to it.
    fn registered(&self, tool: &str);
}
