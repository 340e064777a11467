//! Sessions and projects: creating, listing, forking, reverting, editing.

pub(crate) mod completions;
pub(crate) mod drain;
pub(crate) mod edit;
pub(crate) mod entries;
pub(crate) mod fork;
pub(crate) mod listing;
pub(crate) mod owner;
pub(crate) mod projects;
pub(crate) mod revert;
pub(crate) mod sandboxed;
pub(crate) mod session_rules;
pub(crate) mod sessions;
pub(crate) mod shell;
pub(crate) mod status;
