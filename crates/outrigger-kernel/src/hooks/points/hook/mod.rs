//! Points of `hook`.

pub mod on_error;
