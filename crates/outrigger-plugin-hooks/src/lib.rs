//! The one way to call a hook (invariant 3): the pipeline that drives the kernel's chains over plugin processes and command
//! hooks.
//!
//! [`Pipeline::run`] runs the chain of a point, with deadlines, breakers, costs and records of every handler.
//! [`custom_points`] is where a plugin's process asks for points of its own. It is not for what a handler may do, which is the
//! kernel's table, or for processes, which `outrigger-plugin-supervisor` looks after.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod breakers;
pub mod cost;
pub mod custom_points;
pub mod digest;
mod hook_audit;
pub mod host;
mod payload;
pub mod perf;
pub mod pipeline;

pub use cost::{Cost, Costs};
pub use digest::hash;
pub use hook_audit::{SaidOnce, log_observed};
pub use perf::{Perf, PerfRow};
pub use pipeline::{Pipeline, PipelineContext, PipelineResult};
