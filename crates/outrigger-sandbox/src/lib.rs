//! The only way a process is started (invariant 4), and the only way a foreign path is checked (invariant 11).
//!
//! A [`Spawner`] is a handle to one thread that lives as long as the host and starts every process: the parent-death
//! signal fires when the *thread* that forked ends, so a process must not be started from a worker that may end first.
//! A [`Spec`] says everything about the process to be; nothing is inherited. A [`Child`] is killed with all that it
//! started when it is dropped.
//!
//! What this crate is not for: deciding what a process may do (the policy comes from the caller), talking to it, or
//! keeping it alive. Linux only, 5.4 or later; Landlock from 5.13 on, its TCP rules from 6.7 on.

#[cfg(not(target_os = "linux"))]
compile_error!("outrigger-sandbox needs Linux: it is made of pidfd, PR_SET_PDEATHSIG and Landlock");

pub mod absent;
pub mod cgroup;
pub mod covers;
pub mod env;
pub mod files;
pub mod folders;
pub mod ledger;
pub mod memory;
pub mod paths;
pub mod usage;

mod anchor;
mod calls;
mod child;
mod connects;
mod error;
mod listens;
mod namespace;
mod own_boxes;
mod policy;
mod process;
mod process_tag;
mod procfs;
mod programs;
mod release;
mod run;
mod scoped_network;
mod setup;
mod spawner;
mod spec;
mod terminal;
mod tree;
pub mod uncovered;
mod view;
mod which;

pub use anchor::Anchor;
pub use calls::Calls;
pub use child::{Child, Exit, Killer};
pub use connects::Loopback;
pub use covers::CoversFn;
pub use error::SandboxError;
pub use listens::ProcSockets;
pub use own_boxes::{OwnBox, OwnBoxes};
pub use policy::{Level, Policy};
pub use procfs::start_time;
pub use programs::named as programs_named;
pub use run::{Captured, Output, run, run_with_input};
pub use scoped_network::ScopedNetwork;
pub use spawner::{Forbids, ProcessStart, Spawner, StartFn, hide_host};
pub use spec::{Limits, Spec, Stdio};
pub use terminal::{Size, Terminal};
pub use which::which;
