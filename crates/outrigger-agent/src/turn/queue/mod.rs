//! Prompts that come while a turn runs: they wait, or the turn goes on with them.

pub(crate) mod continuation;
pub(crate) mod steering;
pub(crate) mod waiting_prompts;
