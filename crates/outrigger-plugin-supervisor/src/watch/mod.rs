//! Looking after processes that run: what they use, whether they answer, whether they see what they must not.

pub mod cpu_accounting;
pub mod health;
pub mod resource_limits;
pub mod stale_masks;
pub mod usage;
