//! Routes of sessions: messages, edits, questions and permissions.

pub(crate) mod edit;
pub(crate) mod page;
pub(crate) mod permission;
pub(crate) mod question;
pub(crate) mod sessions;
pub(crate) mod summarize;
mod turn;
