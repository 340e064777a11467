//! Points of `execute`.

pub mod after_step;
pub mod before_shell;
pub mod before_step;
pub mod on_error;
