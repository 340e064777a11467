//! Sessions, messages and what is asked in them.

pub mod compaction;
pub mod event;
pub mod message;
pub mod origin;
mod part;
pub mod permission;
pub mod question;
pub mod session;
