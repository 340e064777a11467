//! Resource use of a plugin process, for display.

use serde::Serialize;

/// Resource use of a plugin process (A1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ProcessUse {
    /// CPU time so far, in milliseconds, with everything it started.
    pub cpu_ms: u64,
    /// Fraction of one core used during the last second.
    pub cpu: f64,
    /// Resident bytes.
    pub rss: u64,
    /// Number of processes.
    pub processes: usize,
}
