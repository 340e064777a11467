//! Compaction: which part of a conversation is summarised, which part stays, and how the summary is requested. The
//! kernel decides when (`outrigger_kernel::turn::compact`).

pub mod plan;
pub mod prune;
pub mod select;
pub mod text;
