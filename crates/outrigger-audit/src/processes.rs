//! Started processes, and their connections.

use std::sync::Arc;

use outrigger_protocol::audit::{AuditKind, AuditRecord, POLICY_PASSED};
use outrigger_sandbox::{Level, ProcessStart, Spawner};
use outrigger_stdx::clock::now_ms;
use outrigger_store::Store;

/// Creates the record of a started process.
fn process(start: &ProcessStart) -> AuditRecord {
    AuditRecord {
        subject: Some(format!("{} ({})", start.label, start.program)),
        detail: Some(format!(
            "pid {}, sandbox: {}",
            start.pid,
            match start.level {
                None => "none requested",
                Some(Level::None) => "none: not supported by the kernel",
                Some(Level::Full) if start.open => "open, except for protected paths",
                Some(Level::Partial) => "partial: the system cannot enforce every rule",
                Some(level) => level.name(),
            }
        )),
        ..AuditRecord::new(AuditKind::Process, now_ms(), "start")
    }
}

/// Returns a spawner whose processes are recorded.
#[must_use]
pub fn recorded(store: &Store, spawner: Spawner) -> Spawner {
    let store = store.clone();
    spawner.with_recorder(Arc::new(move |start| {
        store.audit_lazily(now_ms(), vec![process(start)]);
    }))
}

/// Creates the record of a connection, allowed or refused with a code.
#[must_use]
pub fn connection(
    (host, port): (&str, u16),
    refused: Option<&str>,
    detail: &[String],
) -> AuditRecord {
    let (decision, policy) = match refused {
        Some(code) => ("deny", format!("refused: {code}")),
        None => ("allow", POLICY_PASSED.to_owned()),
    };
    AuditRecord {
        subject: Some(format!("{host}:{port}")),
        errored: refused.is_some(),
        policy_check_result: policy,
        detail: (!detail.is_empty()).then(|| detail.join("; ")),
        ..AuditRecord::new(AuditKind::Network, now_ms(), decision)
    }
}
