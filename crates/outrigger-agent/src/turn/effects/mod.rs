//! Running a turn's effects: each in a separate task that reports to the loop.

pub(crate) mod model_task;
pub(crate) mod spawn;
pub(crate) mod structured;
pub(crate) mod track;
