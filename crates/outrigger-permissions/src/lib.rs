//! Permissions and trust.
//!
//! One set of rules decides for tools and for the processes that they start: [`access`] answers for paths and hosts,
//! [`sandbox_policy`], [`command_sandbox`] and [`helper_sandbox`] turn the same rules into the sandbox of a process,
//! [`deny_policy`] is what the machine policy forbids whatever else is configured, [`pinned_rules`] keeps the user's
//! rules above those of plugins and projects, [`folder_trust`] and [`workspace_trust`] determine whether the settings
//! of a project take effect, [`questions`] holds open questions. The crate itself does not ask the user: the agent
//! does.

pub mod access;
pub mod agents;
pub mod allow_lists;
pub mod allowed_hooks;
pub mod approval;
pub mod callers;
pub mod command_sandbox;
mod config_source;
pub mod deny_policy;
mod error;
pub mod folder_trust;
pub mod helper_sandbox;
pub mod home_files;
pub mod line_files;
pub mod pinned_rules;
pub mod project_programs;
pub mod questions;
pub mod reserved_paths;
pub mod sandbox_policy;
pub mod workspace_trust;

pub use config_source::ConfigSource;
pub use error::TrustError;
