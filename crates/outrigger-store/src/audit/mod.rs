//! The audit (C13): a second hash chain in the same file, which records who did what and who authorised it.
//! docs/audit.md has the reasons.
//!
//! It is written by the same writer, in the same transactions, as the log; it contains hashes instead of contents; its
//! end is sealed with a signature from time to time; and records older than the retention are removed, up to a sealed
//! cut from which the rest can still be verified.

mod chain;
mod query;
mod rate_limit;
mod redact;
mod retention;
#[cfg(test)]
mod retention_tests;
mod seal;
#[cfg(test)]
mod seal_tests;
#[cfg(test)]
mod tamper_tests;
mod verify;

pub use query::{AuditQuery, StoredAudit};
pub use redact::Redactor;
pub use retention::Retention;
pub use verify::{AuditFault, AuditReport};

pub(crate) use chain::{Entry, append, head};
pub(crate) use query::select;
pub(crate) use rate_limit::Bound;
pub(crate) use retention::prune;
pub(crate) use seal::{Sealer, as_hash, public, read_key};
pub(crate) use verify::verify;

use std::sync::OnceLock;

/// Returns the trace of records that belong to no turn: the run of this process.
pub(crate) fn run() -> &'static str {
    static RUN: OnceLock<String> = OnceLock::new();
    let name = || {
        let at = outrigger_stdx::clock::now_ms();
        format!("run_{}_{at}", std::process::id())
    };
    RUN.get_or_init(name)
}
