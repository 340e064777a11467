//! Sessions: the agent carries out what the kernel decides.
//!
//! [`Agent::boot`] reads the configuration, loads plugins and opens the store; [`Agent::prompt`] runs a turn. The turn's
//! decisions are the kernel's (`outrigger_kernel::turn`); this crate calls models, hooks and tools, stores every step
//! before it acts on it, and tells the bus. It knows nothing of HTTP.

mod abandon;
mod admitted;
pub mod agents;
mod allowed;
mod ask;
mod audit;
mod auth;
mod background;
mod boot;
mod bridge;
mod brought;
mod bus;
mod changes;
mod command;
mod command_hooks;
mod compact;
mod confine;
mod continuation;
mod draft;
mod drive;
mod early;
mod edit;
mod effect;
mod error;
mod executor;
mod flags;
mod fork;
mod formatter_list;
mod formatters;
mod git_box;
mod hands;
mod host;
pub mod ids;
mod inner;
mod join;
mod kept_rules;
mod late;
mod life;
mod listing;
mod lsp;
mod mcp;
mod mentions;
mod model_task;
mod notices;
mod observe;
mod offer;
mod own_providers;
mod parts;
mod plugin_tools;
mod project;
mod projects;
mod prompt;
pub mod pty;
mod question;
mod queue;
mod replay;
mod request;
mod reread;
mod revert;
mod sequence;
mod session;
mod shell;
mod skills;
mod snapshot;
mod status;
mod step_events;
mod strict;
mod structured;
mod switch;
mod system;
mod template_shell;
mod title;
mod tool_hosts;
mod track;
mod turns;
pub mod vcs;

pub use admitted::{plugin_snapshot, runs_bundled};
pub use agents::AgentInfo;
pub use ask::Answering;
pub use auth::LoginError;
pub use boot::{
    Adjust, Boot, Folders, Shared, policies, review_options, setup_plugins, verify_options,
};
pub use bus::{Bus, Sink};
pub use command_hooks::AllowedHooks;
pub use compact::ask::Compact;
pub use early::{LogLine, health};
pub use error::AgentError;
pub use flags::flags;
pub use formatters::FormatterStatus;
pub use ids::now;
pub use inner::{Agent, CommandInfo, CommandSource, SdkService};
pub use lsp::LspStatus;
pub use mcp::{
    AllowedServers, AuthStart, AuthState, McpError, McpPrompt, McpState, McpStatus, TokenStore,
    servers_of_skills, tokens as mcp_tokens,
};
pub use outrigger_js::{SdkAnswer, SdkBody};
pub use outrigger_plugins::{PluginError, Snapshot, SnapshotEntry};
pub use project::Place;
pub use projects::ProjectPatch;
pub use prompt::Attachment;
pub use replay::{Replayed, replay};
pub use session::{NewSession, delete_session};
pub use shell::ShellInput;
pub use snapshot::SnapshotError;
pub use structured::check_format;
