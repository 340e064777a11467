//! Who has the servers.

use outrigger_config::Loaded;
use outrigger_mcp::{McpServers, Options};
use outrigger_tools::ToolRuntime;
use outrigger_workspace::Folders;

use crate::skill_servers::SkillServers;

/// Who has the servers, and the runtime that their tools are in. The agent implements it.
pub trait McpHost: Send + Sync {
    /// The configured servers.
    fn mcp(&self) -> &McpServers;
    /// Those of skills.
    fn skill_servers(&self) -> &SkillServers;
    /// Where tools are registered.
    fn runtime(&self) -> &ToolRuntime;
    /// The configuration in force.
    fn config(&self) -> &Loaded;
    /// Where things are kept.
    fn folders(&self) -> &Folders;
    /// What servers are started with.
    fn options(&self) -> Options;
    /// A tool was registered: what the user's settings say of it holds from now on.
    fn registered(&self, tool: &str);
}
