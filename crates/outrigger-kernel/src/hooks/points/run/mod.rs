//! Points of `run`.

pub mod after_start;
pub mod before_command;
pub mod before_start;
pub mod on_error;
