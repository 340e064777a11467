//! One turn: drives the state machine of the kernel and carries out its effects.

pub(crate) mod continuation;
pub(crate) mod draft;
pub(crate) mod drive;
pub(crate) mod effect;
pub(crate) mod model_task;
pub(crate) mod observe;
pub(crate) mod queue;
pub(crate) mod replay;
pub(crate) mod sequence;
pub(crate) mod steering;
pub(crate) mod step_events;
pub(crate) mod structured;
pub(crate) mod track;
pub(crate) mod turns;
