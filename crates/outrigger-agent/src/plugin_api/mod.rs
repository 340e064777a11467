//! What plugins reach of the agent, and what they are notified of.

pub(crate) mod bridge_executor;
pub(crate) mod capability_grants;
pub(crate) mod command_hooks;
pub(crate) mod connector;
pub(crate) mod connector_hooks;
pub(crate) mod contract_routes;
pub(crate) mod hook_notifications;
pub(crate) mod host_bridge;
pub(crate) mod life;
pub(crate) mod plugin_admission;
pub(crate) mod plugin_tools;
pub(crate) mod providers;
pub(crate) mod run_hooks;
pub(crate) mod sdk_service;
