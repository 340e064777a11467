//! What a plugin may reach: its manifest, the user's grants, the environment and the network of its process.

pub mod critical;
pub mod environment;
pub mod grants_in_words;
pub mod manifest;
pub mod network;
pub mod rights;
pub mod settings;
pub mod user_grants;
