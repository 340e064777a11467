//! Replays a stored turn through the kernel: the same inputs must yield the same effects.

use outrigger_kernel::turn::Turn;
use outrigger_kernel::{digest, turn};
use outrigger_protocol::id::TurnId;
use outrigger_protocol::log::TurnStep;
use outrigger_store::Store;

use crate::error::AgentError;

/// The result of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Number of steps compared.
    pub steps: usize,
    /// The turn is complete.
    pub finished: bool,
}

/// Replays a turn from the store and compares every step's effects with the recorded digest.
///
/// # Errors
/// [`AgentError::Replay`] at the first step that differs, and those of the store.
pub fn replay(store: &Store, turn: &TurnId) -> Result<Replayed, AgentError> {
    let steps = store.turn_steps(turn)?;
    // A turn may have been given up because it cannot be replayed.
    if steps.last().is_some_and(|step| step.abandoned.is_some()) {
        return Ok(Replayed {
            steps: steps.len(),
            finished: true,
        });
    }
    let state = state_after(&steps)?;
    Ok(Replayed {
        steps: steps.len(),
        finished: state.is_some_and(|s| s.is_done()),
    })
}

/// Returns the state after the steps.
pub(crate) fn state_after(steps: &[TurnStep]) -> Result<Option<Turn>, AgentError> {
    let mut state = None;
    for step in steps.iter().take_while(|step| step.abandoned.is_none()) {
        let effects = turn::step(&mut state, step.at, step.input.clone());
        let replayed = digest::effects(&effects);
        if replayed != step.digest {
            return Err(AgentError::Replay {
                turn: step.turn.to_string(),
                n: step.n,
                recorded: step.digest.clone(),
                replayed,
            });
        }
    }
    Ok(state)
}
