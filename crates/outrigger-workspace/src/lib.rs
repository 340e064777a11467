//! The project folder of an agent: git, snapshots, terminals, formatters, and what of its files changed.
//!
//! Nothing here knows of sessions or asks for permission. Where a rule decides, the agent says so through a trait
//! ([`vcs::VcsHost`]) or a function that it hands over ([`snapshot::WithheldFn`]).

pub mod file_changes;
mod folders;
pub mod formatters;
pub mod git_policy;
pub mod lock_file;
mod project_location;
pub mod snapshot;
pub mod sync;
pub mod terminals;
pub mod vcs;

pub use folders::Folders;
pub use project_location::ProjectLocation;
