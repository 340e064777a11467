//! Points of `bridge`.

pub mod after_invoke;
pub mod before_invoke;
pub mod on_error;
