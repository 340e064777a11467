//! Prompts that arrive while a turn runs: they are queued, or join the turn.

pub(crate) mod continuation;
pub(crate) mod steering;
pub(crate) mod waiting_prompts;
