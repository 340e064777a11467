//! The only way to start a process (invariant 4) and the only way to check an untrusted path (invariant 11).
//!
//! A [`Spawner`] is a handle to one thread that lives as long as the host and starts every process. The parent-death
//! signal fires when the *thread* that forked ends, so a process must not be started from a worker thread that may end
//! earlier. A [`Spec`] describes the process completely; nothing is inherited. A [`Child`] is killed with everything
//! it started when it is dropped.
//!
//! This crate does not decide what a process may do (the caller provides the policy), talk to it, or keep it alive.
//! Linux only, 5.4 or later; Landlock from 5.13 on, its TCP rules from 6.7 on.

#[cfg(not(target_os = "linux"))]
compile_error!("outrigger-sandbox needs Linux: it is made of pidfd, PR_SET_PDEATHSIG and Landlock");

mod error;
mod fs;
mod namespaces;
mod policy;
mod processes;
mod seccomp;
mod spawn;

pub use error::SandboxError;
pub use fs::anchor::Anchor;
pub use fs::listings::Listings;
pub use fs::lookups::Lookups;
pub use fs::path_masks::CoversFn;
pub use fs::programs::{is_of_system, named as programs_named};
pub use fs::real_paths::RealPaths;
pub use fs::which::which;
pub use fs::{absent, folders, host_path, path_masks, paths, private_tmp, stale_masks};
pub use namespaces::support::has_views;
pub use policy::Policy;
pub use policy::level::Level;
pub use processes::freezer::{FileChanges, ProcessFreeze};
pub use processes::locks::LockHolder;
pub use processes::own::hide_host;
pub use processes::procfs::start_time;
pub use processes::socket_owners::{ProcSockets, command_listens, own_addresses};
pub use processes::{cgroup, ledger, memory, open_files, process_time, usage};
pub use seccomp::calls::Calls;
pub use seccomp::connects::Loopback;
pub use spawn::child::{Child, Killer, Undone};
pub use spawn::env;
pub use spawn::exit::Exit;
pub use spawn::foreground::foreground;
pub use spawn::reaper::wait_for_dropped;
pub use spawn::run::{Captured, Output, run, run_with_input};
pub use spawn::sandbox_overrides::{SandboxOverride, SandboxOverrides};
pub use spawn::scoped_network::ScopedNetwork;
pub use spawn::spawner::{BaseFn, Forbids, ProcessStart, Spawner, StartFn};
pub use spawn::spec::{Limits, Spec, Stdio};
pub use spawn::terminal::{Size, Terminal};
