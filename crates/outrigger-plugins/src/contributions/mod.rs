//! Contributions of plugins besides hooks: tools, logins, providers, skills.

pub(crate) mod auth;
pub(crate) mod contribution_sandbox;
pub(crate) mod plugin_reach;
pub(crate) mod points;
pub(crate) mod provider;
pub(crate) mod skills;
pub(crate) mod tools;
