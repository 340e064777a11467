//! Circuit breakers: a hook that keeps timing out is skipped for a while, so that it costs its deadline a few times and
//! not at every call (A8, A13).
//!
//! One [`Breaker`] belongs to one hook of one plugin. It opens at the third timeout within a minute, or at the third in
//! a row however far apart: at the default deadlines three timeouts may not fit into a minute. While it is open the hook
//! is skipped; then one trial call is let through, and its result decides. A call that was let through before the
//! breaker opened and ends later decides nothing. Times are milliseconds of one monotonic clock.

mod strikes;

use alloc::vec::Vec;

use outrigger_protocol::Millis;
use serde::{Deserialize, Serialize};

pub use strikes::Strikes;

/// When a breaker opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Number of timeouts that open it.
    pub timeouts: usize,
    /// Period in which they occur, unless they are in a row.
    pub window: Millis,
    /// Time that it stays open before a trial.
    pub pause: Millis,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            timeouts: 3,
            window: 60_000,
            pause: 60_000,
        }
    }
}

/// Decision of a breaker about the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Make the call.
    Call,
    /// Make the call as the trial: all others are skipped until it has ended.
    Trial,
    /// Skip the call; the next trial is at this time or in progress.
    Skip {
        /// When the next call is let through, if known.
        until: Millis,
    },
}

/// State change at the end of a call. Each is reported once (A8: every trip and reset is a log line; a trial is reported
/// by its [`Gate`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turned {
    /// It opened, or opened again after a trial. If the trial was inconclusive, `until` is past: the next call is the
    /// next trial.
    Open {
        /// When the next call is let through.
        until: Millis,
    },
    /// The trial succeeded.
    Closed,
}

/// Result of a call for its breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The handler answered, possibly with an error.
    Answered,
    /// The handler exceeded its deadline or crashed.
    TimedOut,
    /// It failed for an unrelated reason.
    Unclear,
}

impl Ended {
    /// Passes the result to a breaker.
    pub fn turn(
        self,
        breaker: &mut Breaker,
        gate: Gate,
        now: Millis,
        rules: &Rules,
    ) -> Option<Turned> {
        match self {
            Self::TimedOut => breaker.timed_out(gate, now, rules),
            Self::Answered => breaker.answered(gate),
            Self::Unclear => breaker.unclear(gate),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Closed,
    Open {
        until: Millis,
    },
    Trial {
        since: Millis,
    },
}

/// The breaker of one hook of one plugin.
///
/// ```
/// use outrigger_kernel::breaker::{Breaker, Gate, Rules};
///
/// let (mut breaker, rules) = (Breaker::default(), Rules::default());
/// for now in [0, 5_000, 10_000] {
///     let gate = breaker.ask(now);
///     assert_eq!(gate, Gate::Call);
///     breaker.timed_out(gate, now, &rules);
/// }
/// // Three timeouts within a minute: the hook is skipped for a minute, then one call decides.
/// assert_eq!(breaker.ask(20_000), Gate::Skip { until: 70_000 });
/// assert_eq!(breaker.ask(70_000), Gate::Trial);
/// breaker.answered(Gate::Trial);
/// assert_eq!(breaker.ask(70_001), Gate::Call);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Breaker {
    state: State,
    /// Times of the latest timeouts, at most the number that opens it.
    timeouts: Vec<Millis>,
    /// Timeouts since the last answer.
    in_row: usize,
}

/// State of a breaker that outlives the process, in milliseconds since the epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedBreaker {
    /// Set if it is open: when the next call is the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Millis>,
    /// Times of the latest timeouts.
    #[serde(default)]
    pub timeouts: Vec<Millis>,
    /// Timeouts since the last answer.
    #[serde(default)]
    pub in_row: usize,
}

/// State of a breaker for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Calls are let through.
    Closed {
        /// Number of recent timeouts.
        timeouts: usize,
    },
    /// Calls are skipped.
    Open {
        /// When the next call is let through.
        until: Millis,
    },
    /// A trial is in progress, other calls are skipped.
    HalfOpen,
}

impl Breaker {
    /// Asks whether a call may be made now. A call that is made must be ended with [`Breaker::answered`],
    /// [`Breaker::timed_out`] or [`Breaker::unclear`].
    pub fn ask(&mut self, now: Millis) -> Gate {
        match self.state {
            State::Closed => Gate::Call,
            State::Open { until } if now < until => Gate::Skip { until },
            State::Open { .. } => {
                self.state = State::Trial { since: now };
                Gate::Trial
            }
            State::Trial { since } => Gate::Skip { until: since },
        }
    }

    /// Records that a call was answered, possibly with an error: the hook works.
    pub fn answered(&mut self, gate: Gate) -> Option<Turned> {
        match (self.state, gate) {
            (State::Trial { .. }, Gate::Trial) => {
                *self = Self::default();
                Some(Turned::Closed)
            }
            (State::Closed, _) => {
                self.in_row = 0;
                None
            }
            _ => None,
        }
    }

    /// Records that a call missed its deadline, or that its plugin crashed the process during it.
    pub fn timed_out(&mut self, gate: Gate, now: Millis, rules: &Rules) -> Option<Turned> {
        match (self.state, gate) {
            (State::Trial { .. }, Gate::Trial) => Some(self.open(now, rules)),
            (State::Closed, _) => {
                self.in_row += 1;
                self.timeouts.push(now);
                let spare = self.timeouts.len().saturating_sub(rules.timeouts.max(1));
                self.timeouts.drain(..spare);
                let together = self.counting(now, rules) >= rules.timeouts;
                (together || self.in_row >= rules.timeouts).then(|| self.open(now, rules))
            }
            _ => None,
        }
    }

    /// Records that a call ended inconclusively: it was cancelled, or its process was killed for another reason. The
    /// next call repeats a trial.
    pub fn unclear(&mut self, gate: Gate) -> Option<Turned> {
        let (State::Trial { since }, Gate::Trial) = (self.state, gate) else {
            return None;
        };
        self.state = State::Open { until: since };
        Some(Turned::Open { until: since })
    }

    fn open(&mut self, now: Millis, rules: &Rules) -> Turned {
        let until = now.saturating_add(rules.pause);
        self.state = State::Open { until };
        self.timeouts.clear();
        self.in_row = 0;
        Turned::Open { until }
    }

    fn counting(&self, now: Millis, rules: &Rules) -> usize {
        let recent = |at: &&Millis| now.saturating_sub(**at) < rules.window;
        self.timeouts.iter().filter(recent).count()
    }

    /// Returns the state to store; `None` for an untouched breaker. A trial in progress is not stored.
    #[must_use]
    pub fn keep(&self) -> Option<SavedBreaker> {
        let until = match self.state {
            State::Closed => None,
            State::Open { until } => Some(until),
            State::Trial { since } => Some(since),
        };
        let is_new = until.is_none() && self.timeouts.is_empty() && self.in_row == 0;
        (!is_new).then(|| SavedBreaker {
            until,
            timeouts: self.timeouts.clone(),
            in_row: self.in_row,
        })
    }

    /// Restores a breaker from its stored state. A clock that was set back does not extend the pause.
    #[must_use]
    pub fn recall(kept: SavedBreaker, now: Millis, rules: &Rules) -> Self {
        let longest = now.saturating_add(rules.pause);
        let state = kept.until.map_or(State::Closed, |until| State::Open {
            until: until.min(longest),
        });
        let mut timeouts: Vec<Millis> = kept.timeouts.into_iter().map(|at| at.min(now)).collect();
        let spare = timeouts.len().saturating_sub(rules.timeouts.max(1));
        timeouts.drain(..spare);
        Self {
            state,
            timeouts,
            in_row: kept.in_row,
        }
    }

    /// Returns the state for display.
    #[must_use]
    pub fn view(&self, now: Millis, rules: &Rules) -> View {
        match self.state {
            State::Closed => View::Closed {
                timeouts: self.counting(now, rules).max(self.in_row),
            },
            State::Open { until } => View::Open { until },
            State::Trial { .. } => View::HalfOpen,
        }
    }
}
