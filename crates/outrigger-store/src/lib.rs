//! SQLite storage: one append-only, hash-chained log and the projections read from it.
//!
//! The log is the truth (invariant 6: intent is written before an effect, the outcome after it, and what was published
//! is in the store). Sessions, messages, parts, todo lists and turns are projections of it, updated in the same
//! transaction; [`Store::rebuild`] rebuilds them with identical rows.
//!
//! [`Store`] is the entry point. Writes go through one thread that combines queued ones into one transaction; readers
//! have their own connections. Several processes may have one file open. "Written" means: survives `kill -9` of this
//! process (WAL, `synchronous=NORMAL`); to survive a power loss as well, use [`Store::flush`] with `sync`.

mod audit;
mod chain;
mod completions;
mod error;
pub mod fault;
mod history;
mod messages;
mod migrations;
mod open;
mod project;
mod queue;
mod read;
mod salvage;
mod scan;
mod store;
mod usage;
mod writer;

pub use audit::{AuditFault, AuditQuery, AuditReport, Redactor, Retention, StoredAudit};
pub use chain::{ChainFault, ChainReport, Hash, Head};
pub use error::StoreError;
pub use history::StoredHistory;
pub use open::{OpenOptions, OpenReport};
pub use outrigger_stdx::text::hex;
pub use read::{PluginUse, RecordQuery, Scope, SessionFilter, StoredRecord, TurnInfo};
pub use salvage::{SalvageReport, salvage};
pub use scan::StoredPart;
pub use store::Store;
pub use usage::{ModelUsage, SessionUsage};
