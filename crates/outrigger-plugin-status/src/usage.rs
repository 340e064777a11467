//! What a plugin process uses, as it is shown.

use serde::Serialize;

/// What a plugin process uses (A1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ProcessUse {
    /// CPU time so far, in milliseconds, with everything it started.
    pub cpu_ms: u64,
    /// Part of one core that it used during the last second.
    pub cpu: f64,
    /// Resident bytes.
    pub rss: u64,
    /// Processes.
    pub processes: usize,
}
