//! Replaying a stored turn through the kernel: the same inputs must yield the same effects.

use outrigger_kernel::turn::Turn;
use outrigger_kernel::{digest, turn};
use outrigger_protocol::id::TurnId;
use outrigger_protocol::log::TurnStep;
use outrigger_store::Store;

use crate::error::AgentError;

/// What a replay found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Steps that were compared.
    pub steps: usize,
    /// The turn had completed.
    pub finished: bool,
}

/// Replays a turn from the store and compares every step's effects with the recorded digest.
///
/// # Errors
/// [`AgentError::Replay`] at the first step that differs, and those of the store.
pub fn replay(store: &Store, turn: &TurnId) -> Result<Replayed, AgentError> {
    let steps = store.turn_steps(turn)?;
    // One that was given up may be one that cannot be replayed: that is why it was given up.
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

/// The state that the steps lead to.
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
