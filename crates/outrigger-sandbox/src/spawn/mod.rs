//! Starts a process: its specification, the thread that forks, the child between fork and exec, and the handle to it.

pub(crate) mod async_fd;
pub(crate) mod child;
pub mod env;
pub(crate) mod exit;
pub(crate) mod foreground;
pub(crate) mod process;
pub(crate) mod reaper;
pub(crate) mod run;
pub(crate) mod sandbox_overrides;
pub(crate) mod scoped_network;
pub(crate) mod setup;
pub(crate) mod spawner;
pub(crate) mod spec;
pub(crate) mod terminal;
