//! What was changed: of a call's arguments by plugins, and of a conversation by a revert.

pub mod argument_changes;
pub mod revert_points;
