//! How many files this process may have open.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit that this process was started with, where it was raised.
static BEFORE: OnceLock<u64> = OnceLock::new();

/// Raises the limit as far as the system allows it: connections, terminals and processes all take descriptors, and the usual
/// 1024 is soon reached. Processes that are started get the limit that was there before (programs that use `select` fail above
/// it). To be called once, at the start.
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

/// What a started process gets; `None` where it was not raised.
pub(crate) fn of_children() -> Option<u64> {
    BEFORE.get().copied()
}

/// How many files may be open now.
#[must_use]
pub fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
