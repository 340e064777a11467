//! Dispatches requests to agents: folders, plugins and in-process clients.

pub(crate) mod client;
pub(crate) mod dispatch;
pub(crate) mod hub;
pub(crate) mod local_client;
pub(crate) mod move_session;
pub(crate) mod plugin_agents;
pub(crate) mod renew;
pub(crate) mod sdk_service;
