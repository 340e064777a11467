//! The project folder of an agent: git, snapshots, terminals, formatters, and file changes.
//!
//! Nothing here knows sessions or asks for permission. Where a rule decides, the agent provides the decision
//! through a trait ([`vcs::VcsHost`]) or a function ([`snapshot::WithheldFn`]).

pub mod file_changes;
mod folders;
pub mod formatters;
pub mod git_policy;
pub mod lock_file;
mod project_location;
pub mod snapshot;
pub mod terminals;
pub mod vcs;

pub use folders::Folders;
pub use project_location::ProjectLocation;
