//! Paths and files: checking paths, folders held open, what is masked in a project, where programs are.

pub mod absent;
pub(crate) mod allowed_paths;
pub(crate) mod anchor;
pub mod folders;
pub mod host_path;
pub mod path_masks;
pub mod paths;
pub mod private_tmp;
pub(crate) mod programs;
pub(crate) mod real_paths;
pub mod stale_masks;
pub(crate) mod which;
