//! Paths and files: path checks, folders held open, masked files of a project, and where programs
//! are.

pub mod absent;
pub(crate) mod allowed_paths;
pub(crate) mod anchor;
pub mod folders;
pub mod host_path;
pub(crate) mod listings;
pub(crate) mod lookups;
pub mod path_masks;
pub mod paths;
pub mod private_tmp;
pub(crate) mod programs;
pub(crate) mod real_paths;
pub mod stale_masks;
pub(crate) mod which;
