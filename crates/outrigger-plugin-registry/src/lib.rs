//! The list of plugins: how far each one is, what it may reach, and who is called at which hook point.
//!
//! [`Registry`] is the list, shared by what loads, supervises and calls plugins. [`access`] says what a plugin may reach:
//! the settings, its manifest, the user's grants, its environment and its hosts. Nothing here starts a process or calls a hook.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod access;
pub mod error;
mod registry;
mod status;

pub use error::PluginError;
pub use registry::{Bound, COMMAND_GROUP, Configured, Fresh, Plugin, ProcessList, Registry};
pub use status::{PluginStatus, SourceOf};
