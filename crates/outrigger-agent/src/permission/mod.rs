//! Who is asked, who caused an action, and what a process may do.

pub(crate) mod answering;
pub(crate) mod approval;
pub(crate) mod ask;
pub(crate) mod audit;
pub(crate) mod causes;
pub(crate) mod process_sandbox;
pub(crate) mod trust;
pub(crate) mod user_questions;
