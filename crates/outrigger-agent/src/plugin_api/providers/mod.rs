//! Model providers of plugins: how one logs in, and which they bring.

pub(crate) mod auth;
pub(crate) mod login;
pub(crate) mod plugin_providers;
pub(crate) mod routes;
