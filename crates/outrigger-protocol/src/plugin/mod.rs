//! Communication with plugins and their processes.

pub mod auth;
pub mod custom_points;
pub mod history;
pub mod hook;
pub mod login;
pub mod manifest;
pub mod rpc;
pub mod transfer;
