//! The parts of the interface's state.

pub mod actions;
pub mod asking;
pub mod attachments;
pub mod conversation;
pub mod editor;
pub mod effect;
pub mod footer;
pub mod keys;
pub mod layout;
pub mod picker;
pub mod vi;
