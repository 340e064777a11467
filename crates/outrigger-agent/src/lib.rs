//! Sessions: the agent carries out what the kernel decides.
//!
//! [`Agent::boot`] reads the configuration, loads plugins and opens the store; [`Agent::run`] runs a turn. The turn's
//! decisions are the kernel's (`outrigger_kernel::turn`); this crate calls models, hooks and tools, stores every step
//! before it acts on it, and tells the bus. It knows nothing of HTTP.

mod boot;
mod bus;
mod compaction;
mod error;
pub mod ids;
mod permission;
mod plugin_api;
mod prompt;
mod session;
mod state;
mod tools;
mod turn;

pub use boot::flags::flags;
pub use boot::options::{Boot, Shared};
pub use boot::reviews::{review_options, verify_options};
pub use boot::settings_file::{read_settings, write_grant, write_settings};
pub use boot::setup::{policies, setup_plugins};
pub use bus::{Bus, Sink};
pub use error::AgentError;
pub use ids::now;
pub use outrigger_config::TRUST_PROJECT;
pub use outrigger_contributions::startup_api::{LogLine, health};
pub use outrigger_js::{SdkAnswer, SdkBody};
pub use outrigger_mcp::{
    AuthStart, AuthState, McpError, State as McpState, Status as McpStatus, TokenStore,
};
pub use outrigger_mcp_tools::{AllowedServers, McpPrompt, servers_of_skills};
pub use outrigger_permissions::agents::{self, AgentInfo};
pub use outrigger_permissions::allowed_hooks::AllowedHooks;
pub use outrigger_permissions::folder_trust::{FolderQuestion, FolderTrustFn};
pub use outrigger_permissions::workspace_trust::Rewritten;
pub use outrigger_plugins::{PluginError, Snapshot, SnapshotEntry};
pub use outrigger_prompt::command::{CommandInfo, CommandSource};
pub use outrigger_workspace::formatters::FormatterStatus;
pub use outrigger_workspace::snapshot::SnapshotError;
pub use outrigger_workspace::{Folders, Place};
pub use permission::answering::Answering;
pub use permission::trust::{allow_settings, count_settings, distrust_folder, trust_folder};
pub use plugin_api::plugin_admission::{plugin_snapshot, runs_bundled};
pub use plugin_api::providers::login::LoginError;
pub use plugin_api::sdk_service::SdkService;
pub use session::drain::Working;
pub use session::listing::View;
pub use session::projects::ProjectPatch;
pub use session::sessions::{NewSession, delete_session};
pub use session::shell::ShellInput;
pub use state::Agent;
pub use tools::lsp::LspStatus;
pub use tools::mcp::tokens as mcp_tokens;
pub use turn::replay::{Replayed, replay};
pub use turn::request::{Compact, Origin, TurnInput, TurnRequest};
