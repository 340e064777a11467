//! Where records for the audit go.

use std::sync::Arc;

use outrigger_protocol::audit::AuditRecord;

/// Takes records for the audit.
pub type RecordFn = Arc<dyn Fn(AuditRecord) + Send + Sync>;

/// Milliseconds since the epoch.
pub(crate) fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX))
}
