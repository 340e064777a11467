//! The list of plugins: the stage of each, its access, and the handlers at each hook point.
//!
//! [`Registry`] is the list, shared by the code that loads, supervises and calls plugins. [`access`] determines what a plugin
//! may reach: the settings, its manifest, the user's grants, its environment and its hosts. Nothing here starts a process or
//! calls a hook.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod access;
pub mod error;
mod registry;
mod status;

pub use access::grants_in_words::UserGrants;
pub use error::PluginError;
pub use registry::{
    Bound, COMMAND_GROUP, ConfigStep, Configured, Fresh, Plugin, ProcessList, Registry,
};
pub use status::{PluginStatus, SourceOf};
