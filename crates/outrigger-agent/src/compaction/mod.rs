//! Compaction: what is summarised, how it is asked for, and what stays. When it happens is the kernel's
//! (`outrigger_kernel::turn::compact`).

pub(crate) mod ask;
pub(crate) mod history;
pub(crate) mod plan;
mod prune;
pub(crate) mod run;
pub(crate) mod select;
#[cfg(test)]
mod testing;
pub(crate) mod text;
