//! Points of `runtime`.

pub mod configure;
pub mod dispose;
pub mod route_after_select;
pub mod route_on_error;
pub mod route_small_model;
