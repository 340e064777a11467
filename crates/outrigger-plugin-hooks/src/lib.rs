//! The one way to call a hook (invariant 3): the pipeline that drives the kernel's chains over plugin processes and command
//! hooks.
//!
//! [`Pipeline::run`] runs the chain of a point, with deadlines, breakers, costs and records of every handler.
//! [`custom_points`] handles the requests of a plugin's process for its custom points. The rights of handlers are in the
//! kernel's table, and `outrigger-plugin-supervisor` manages the processes.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod breakers;
mod changes;
pub mod cost;
pub mod custom_points;
pub mod digest;
mod hook_audit;
pub mod host;
mod payload;
pub mod perf;
pub mod pipeline;

pub use changes::RedactFn;
pub use cost::{Cost, Costs};
pub use digest::hash;
pub use hook_audit::{SaidOnce, log_observed};
pub use perf::{Perf, PerfRow};
pub use pipeline::{Pipeline, PipelineContext, PipelineResult};
