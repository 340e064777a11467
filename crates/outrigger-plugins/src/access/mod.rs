//! What a plugin may reach: its manifest, what the user grants, the environment and the network of its process.

pub(crate) mod critical;
pub(crate) mod environment;
pub(crate) mod manifest;
pub(crate) mod network;
pub(crate) mod own_reach;
pub(crate) mod rights;
pub(crate) mod settings;
pub(crate) mod user_grants;
