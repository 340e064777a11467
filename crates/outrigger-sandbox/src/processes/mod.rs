//! Running processes: `/proc`, trees, the ledger, control groups, resource usage.

pub mod cgroup;
pub(crate) mod freezer;
pub mod ledger;
pub(crate) mod locks;
pub mod memory;
pub mod open_files;
pub(crate) mod own;
pub mod process_time;
pub(crate) mod procfs;
pub(crate) mod socket_owners;
pub(crate) mod tag;
pub(crate) mod tree;
pub mod usage;
pub(crate) mod waker;
