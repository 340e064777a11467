//! Prompts that arrive while a turn runs: they wait, or the turn takes them in.

pub(crate) mod continuation;
pub(crate) mod steering;
pub(crate) mod waiting_prompts;
