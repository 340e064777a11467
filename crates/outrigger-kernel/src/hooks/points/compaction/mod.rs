//! Points of `compaction`.

pub mod after_finish;
pub mod before_start;
