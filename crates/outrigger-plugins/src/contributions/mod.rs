//! Contributions of plugins besides hooks: tools, logins, providers, skills.

pub(crate) mod auth;
mod common_policy;
mod config_authors;
mod contribution_sandbox;
pub(crate) mod plugin_reach;
pub(crate) mod points;
pub(crate) mod provider;
pub(crate) mod skills;
pub(crate) mod tools;
