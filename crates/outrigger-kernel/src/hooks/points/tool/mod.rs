//! Points of `tool`.

pub mod after_result;
pub mod before_call;
pub mod before_permission;
pub mod on_error;
