//! Compaction in a session: asked for, planned from the store, and pruned after. What is summarised is `outrigger-prompt`'s, when it
//! happens the kernel's (`outrigger_kernel::turn::compact`).

pub(crate) mod ask;
mod prune;
pub(crate) mod run;
