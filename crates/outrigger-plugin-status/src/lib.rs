//! What a program is shown of its plugins: how far each is ([`Stage`]), what is reported while they load ([`Progress`]) and
//! while they run ([`Notice`]). Plain data; nothing here decides.

mod breaker;
mod notice;
mod progress;
mod stage;
mod usage;

pub use breaker::BreakerMemory;
pub use breaker::{BreakerState, BreakerStatus};
pub use notice::{Notice, NoticeFn};
pub use progress::{Cause, Fetched, Progress, ProgressFn};
pub use stage::{LifeState, Stage};
pub use usage::ProcessUse;
