//! An agent in one project folder: its sessions and the turns that run in them.
//!
//! A [`Boot`] holds the folder and the options; [`Agent::boot`] reads the configuration, opens the store and loads the
//! plugins. [`Agent::create_session`] creates a session, [`Agent::run`] carries out a [`TurnRequest`] to the end of its
//! turn, and [`Agent::listen`] receives the events meanwhile. Questions arrive as events; [`Agent::answer`] answers
//! permission questions, [`Agent::answer_question`] questions of the model. [`Agent::shutdown`] ends the agent.
//!
//! The kernel (`outrigger_kernel::turn`) decides what a turn does next. This crate carries the decisions out: it calls
//! models, hooks and tools, stores every step before it acts on it, and publishes what happened. It knows nothing of HTTP.
//! The README describes each module.

mod boot;
mod compaction;
mod error;
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
pub use boot::setup::{policies, setup_plugins};
pub use error::AgentError;
pub use outrigger_config::TRUST_PROJECT;
pub use outrigger_contributions::startup_api::{LogLine, health};
pub use outrigger_js::{SdkAnswer, SdkBody};
pub use outrigger_mcp::{
    AuthStart, AuthState, McpError, Placement as McpPlacement, State as McpState,
    Status as McpStatus, TokenStore,
};
pub use outrigger_mcp_tools::{AllowedServers, McpPrompt};
pub use outrigger_permissions::TrustError;
pub use outrigger_permissions::agents::{self, AgentInfo};
pub use outrigger_permissions::allowed_hooks::AllowedHooks;
pub use outrigger_permissions::folder_trust::{
    FolderEntry, FolderQuestion, FolderSection, FolderTrustFn,
};
pub use outrigger_permissions::folder_trust::{distrust_folder, trust_folder, why_ignored};
pub use outrigger_permissions::workspace_trust::{
    Rewritten, accept_rewritten_settings, allow_settings,
};
pub use outrigger_plugins::{PluginError, Snapshot, SnapshotEntry};
pub use outrigger_prompt::command::{CommandInfo, CommandSource};
pub use outrigger_session_state::bus::{Bus, Sink};
pub use outrigger_session_state::ids;
pub use outrigger_session_state::turn_channel::Compact;
pub use outrigger_workspace::formatters::FormatterStatus;
pub use outrigger_workspace::snapshot::SnapshotError;
pub use outrigger_workspace::{Folders, ProjectLocation};
pub use permission::answering::Answering;
pub use permission::trust::{confirm_folder_trust, waiting_settings};
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
pub use tools::remote_call::asked_by;
pub use turn::budget::budget_line;
pub use turn::replay::{Replayed, replay};
pub use turn::request::{Origin, TurnInput, TurnRequest};
