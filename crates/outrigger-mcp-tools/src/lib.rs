//! MCP servers in the tool runtime: their tools, resources and prompts, those of skills, the user's approvals of a
//! project's servers, and where each starts. `outrigger-mcp` implements the connection to a server.

mod allowed;
mod answering;
pub mod attach;
mod contents;
mod host;
mod launch;
pub mod prompts;
mod register;
mod resources;
mod sampling;
mod skill_launch;
pub mod skill_servers;
mod skills;
mod tool;

pub use allowed::{AllowedServers, with_claude};
pub use host::McpHost;
pub use launch::{ServerLauncher, Spawners};
pub use prompts::McpPrompt;
pub use register::{is_mcp, offer, register};
pub use skill_servers::SkillServers;
pub use skills::{servers_of_skills, start_skill_servers, users_skill_folders};
