//! Sessions, messages and questions.

pub mod compaction;
pub mod event;
pub mod message;
pub mod origin;
mod part;
pub mod permission;
pub mod question;
pub mod session;
