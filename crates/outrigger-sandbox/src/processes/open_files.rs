//! The limit of open files of this process.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit with which this process was started, if it was raised.
static BEFORE: OnceLock<u64> = OnceLock::new();

/// Raises the limit as far as the system allows: connections, terminals and processes all take descriptors, and the usual 1024
/// are soon used up. Started processes get the original limit (programs that use `select` fail above it). Call it once, at the
/// start.
pub fn raise_limit() {
    let now = getrlimit(Resource::Nofile);
    let Some(soft) = now.current else { return };
    let raised = Rlimit {
        current: now.maximum,
        maximum: now.maximum,
    };
    if now.maximum.is_none_or(|most| most > soft) && setrlimit(Resource::Nofile, raised).is_ok() {
        let _ = BEFORE.set(soft);
    }
}

/// Returns the limit for started processes; `None` if it was not raised.
pub(crate) fn of_children() -> Option<u64> {
    BEFORE.get().copied()
}

/// Returns the current limit of open files.
#[must_use]
pub fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
