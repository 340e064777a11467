//! What a program is shown of its plugins: how far each is ([`Stage`]), what is reported while they load ([`Progress`]) and
//! while they run ([`Notice`]). Plain data; nothing here decides.

mod breaker;
mod notice;
mod progress;
mod stage;
mod usage;

/// Target of warnings that repeat what another one says of the same event. The log has them; a person who reads warnings between
/// the lines of an answer reads the other one.
pub const DETAIL: &str = "plugin::detail";

pub use breaker::BreakerMemory;
pub use breaker::{BreakerState, BreakerStatus};
pub use notice::{Notice, NoticeFn};
pub use progress::{Cause, Fetched, Progress, ProgressFn};
pub use stage::{LifeState, Stage};
pub use usage::ProcessUse;
