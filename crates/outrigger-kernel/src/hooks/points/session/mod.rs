//! Points of `session`.

pub mod after_append_entry;
pub mod after_complete_message;
pub mod before_create;
pub mod before_fork;
pub mod on_error;
pub mod on_event;
