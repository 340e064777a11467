//! Compaction in a session: requested, planned from the store, and pruned afterwards. `outrigger-prompt` selects what is
//! summarised; the kernel decides when (`outrigger_kernel::turn::compact`).

pub(crate) mod ask;
mod prune;
pub(crate) mod run;
