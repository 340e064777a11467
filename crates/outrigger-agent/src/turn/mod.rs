//! Runs one turn: drives the kernel's state machine and carries out its effects.

pub(crate) mod budget;
pub(crate) mod draft;
pub(crate) mod drive;
pub(crate) mod effects;
mod external;
pub(crate) mod observe;
pub(crate) mod queue;
pub(crate) mod replay;
pub(crate) mod request;
pub(crate) mod request_options;
pub(crate) mod start;
pub(crate) mod step_events;
pub(crate) mod turns;
