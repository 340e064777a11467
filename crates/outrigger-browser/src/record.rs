//! Where records for the audit go.

use std::sync::Arc;

use outrigger_protocol::audit::AuditRecord;

/// Takes records for the audit.
pub type RecordFn = Arc<dyn Fn(AuditRecord) + Send + Sync>;
