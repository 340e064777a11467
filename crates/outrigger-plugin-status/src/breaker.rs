//! Breakers for display (A8).

use outrigger_kernel::breaker::{SavedBreaker, View};
use outrigger_protocol::Millis;
use serde::Serialize;

/// The breaker of one hook, unless it is simply closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BreakerStatus {
    /// The hook, by the name under which plugins register it.
    pub hook: String,
    /// State of the breaker.
    pub state: BreakerState,
    /// Number of recent timeouts, while it is closed.
    pub timeouts: usize,
    /// Milliseconds until the next call is let through, while it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opens_in_ms: Option<u64>,
}

impl BreakerStatus {
    /// Creates it; `None` for a breaker at rest.
    #[must_use]
    pub fn of(hook: &str, view: View, now: Millis) -> Option<Self> {
        let (state, timeouts, until) = match view {
            View::Closed { timeouts: 0 } => return None,
            View::Closed { timeouts } => (BreakerState::Closed, timeouts, None),
            View::Open { until } => (BreakerState::Open, 0, Some(until.saturating_sub(now))),
            View::HalfOpen => (BreakerState::HalfOpen, 0, None),
        };
        Some(Self {
            hook: hook.to_owned(),
            state,
            timeouts,
            opens_in_ms: until,
        })
    }
}

/// States of a breaker (A8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// Calls are let through.
    Closed,
    /// Calls are skipped.
    Open,
    /// A trial is in progress, other calls are skipped.
    HalfOpen,
}

impl std::fmt::Display for BreakerState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half open",
        })
    }
}

/// Storage of breakers beyond the end of the process: otherwise a program that runs for one prompt would pay the deadlines of a
/// hanging hook each time (A8). Entries belong to one version of a plugin or command.
pub trait BreakerMemory: Send + Sync {
    /// Returns the stored breakers of `who`, each with its place.
    fn recall(&self, who: &str) -> Vec<(String, SavedBreaker)>;

    /// Replaces the stored state; `None` for an untouched breaker.
    fn keep(&self, who: &str, place: &str, kept: Option<SavedBreaker>);
}
