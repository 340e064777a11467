//! The processes of plugins: starting them, what they use, who is to blame, starting them again.
//!
//! A [`group::Group`] is one plugin process before and after its restarts (A7), [`processes::Processes`] all of a project, and
//! [`launch::Launch`] what they are started with. Policy over [`outrigger_js`], which knows who hangs and not what follows from
//! it. It is not for hook chains, which find their processes here.

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
