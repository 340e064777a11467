//! The receiver of audit records.

use std::sync::Arc;

use outrigger_protocol::audit::AuditRecord;

/// Receives audit records.
pub type RecordFn = Arc<dyn Fn(AuditRecord) + Send + Sync>;
