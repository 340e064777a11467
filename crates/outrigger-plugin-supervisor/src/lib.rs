//! The processes of plugins: starting, measuring, blaming, and restarting them.
//!
//! A [`group::Group`] is one plugin process before and after its restarts (A7), [`processes::Processes`] all of a project, and
//! [`launch::Launch`] their start options. This is policy over [`outrigger_js`], which detects a hang but does not decide the
//! consequences. Hook chains are elsewhere and find their processes here.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod blame;
pub mod failures;
pub mod fault_memory;
pub mod group;
pub mod host_proxy;
pub mod isolation_memory;
pub mod launch;
pub mod process_assignment;
pub mod processes;
pub mod reconfigure;
mod waiting;
pub mod watch;
