//! Compaction: what of a conversation is summarised, what stays, and how the summary is requested. When it happens is
//! the kernel's (`outrigger_kernel::turn::compact`).

pub mod plan;
pub mod prune;
pub mod select;
pub mod text;
