//! What a turn's effects do in the world: each runs in a task of its own and reports to the loop.

pub(crate) mod model_task;
pub(crate) mod spawn;
pub(crate) mod structured;
pub(crate) mod track;
