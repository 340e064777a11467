//! Access control: checks of requests, and what clients of plugins may access.

pub(crate) mod author;
pub(crate) mod guard;
pub(crate) mod marks;
pub(crate) mod page_session;
pub(crate) mod permission_escalation;
pub(crate) mod plugin_routes;
pub(crate) mod plugin_storage;
pub(crate) mod project_sessions;
pub(crate) mod scope;
