//! Status of plugins for display: the stage of each ([`Stage`]), reports while they load ([`Progress`]) and while they run
//! ([`Notice`]). Plain data, and the breakers that plugins and command hooks share ([`Breakers`]).

mod breaker;
mod breakers;
mod notice;
mod progress;
mod stage;
mod usage;

/// Target of warnings that repeat another warning about the same event. They go to the log; the other one is shown to the user
/// between the lines of an answer.
pub const DETAIL: &str = "plugin::detail";

pub use breaker::{BreakerMemory, BreakerState, BreakerStatus};
pub use breakers::{BreakerKey, Breakers, GuardedCall};
pub use notice::{Notice, NoticeFn};
pub use progress::{Cause, Fetched, Progress, ProgressFn};
pub use stage::{LifeState, Stage};
pub use usage::ProcessUse;
