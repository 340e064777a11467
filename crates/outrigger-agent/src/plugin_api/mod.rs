//! What plugins reach of the agent, and what they are told.

pub(crate) mod auth;
pub(crate) mod bridge_executor;
pub(crate) mod capability_grants;
pub(crate) mod command_hooks;
pub(crate) mod connector;
pub(crate) mod deferred_events;
pub(crate) mod hook_notifications;
pub(crate) mod host_bridge;
pub(crate) mod life;
pub(crate) mod own_providers;
pub(crate) mod plugin_admission;
pub(crate) mod plugin_contributions;
pub(crate) mod plugin_tools;
pub(crate) mod startup_api;
