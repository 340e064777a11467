//! Running processes: `/proc`, trees, the ledger, control groups, resource usage.

pub mod cgroup;
pub(crate) mod freezer;
pub mod ledger;
pub mod memory;
pub mod open_files;
pub(crate) mod own;
pub(crate) mod procfs;
pub(crate) mod socket_owners;
pub(crate) mod tag;
pub(crate) mod tree;
pub mod usage;
