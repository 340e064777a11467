//! Watching running processes: resource use, health, and hidden files.

pub mod cpu_accounting;
pub mod health;
pub mod resource_limits;
pub mod stale_masks;
pub mod usage;
