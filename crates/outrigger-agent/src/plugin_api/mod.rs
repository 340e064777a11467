//! The part of the agent that plugins can reach, and the notifications that they receive.

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
