//! Doom loops: a model that repeats the same calls with the same results.
//!
//! A call is a repetition if it would complete the third round of a cycle: of one call or of several, with the same
//! arguments and the same results each time. Success makes no difference: a call that succeeds a third time with the
//! same result has given the model nothing new. A missing result (parallel calls) counts as the same.

use alloc::vec::Vec;

/// Number of rounds that make a loop.
const ROUNDS: usize = 3;
/// Length in calls of the longest cycle that is detected.
const MAX_CYCLE_CALLS: usize = 8;

/// A call, for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// Fingerprint of tool and arguments.
    pub call: u64,
    /// Fingerprint of the result; `None` until there is one.
    pub result: Option<u64>,
}

/// The latest calls of a turn, as many as the detection needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repeats {
    made: Vec<Made>,
    /// Number of forgotten calls, so that positions stay valid.
    dropped: usize,
}

impl Repeats {
    /// Adds a call before it is made; returns its position and whether it is a repetition.
    pub fn add(&mut self, call: u64) -> (usize, bool) {
        self.made.push(Made { call, result: None });
        let spare = self.made.len().saturating_sub(ROUNDS * MAX_CYCLE_CALLS);
        self.made.drain(..spare);
        self.dropped += spare;
        (self.dropped + self.made.len() - 1, is_loop(&self.made))
    }

    /// Records the result of the call at a position.
    pub fn answered(&mut self, position: usize, result: u64) {
        let made = position
            .checked_sub(self.dropped)
            .and_then(|at| self.made.get_mut(at));
        if let Some(made) = made {
            made.result = Some(result);
        }
    }
}

/// Returns whether the last call completes the third round of a cycle.
#[must_use]
pub fn is_loop(made: &[Made]) -> bool {
    (1..=MAX_CYCLE_CALLS).any(|length| {
        let Some(from) = made.len().checked_sub(ROUNDS * length) else {
            return false;
        };
        let rounds = made.get(from..).unwrap_or_default();
        rounds
            .iter()
            .zip(rounds.iter().skip(length))
            .all(|(a, b)| same(a, b))
    })
}

fn same(a: &Made, b: &Made) -> bool {
    let results = match (a.result, b.result) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    };
    a.call == b.call && results
}
