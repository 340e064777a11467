//! Model providers of plugins: logins and models.

pub(crate) mod auth;
pub(crate) mod login;
pub(crate) mod plugin_providers;
pub(crate) mod routes;
