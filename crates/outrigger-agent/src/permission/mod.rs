//! Permission questions, the causes of actions, and the sandbox of processes.

pub(crate) mod answering;
pub(crate) mod approval;
pub(crate) mod ask;
pub(crate) mod audit;
pub(crate) mod causes;
mod hook_rights;
pub(crate) mod process_sandbox;
pub(crate) mod trust;
pub(crate) mod user_questions;
