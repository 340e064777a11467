//! Hook points and chains (invariant 3): the one table of points, and the one way to run a chain.

mod answer;
mod chain;
mod fields;
mod fold;
mod payload;
pub mod points;
mod rights;
mod spec;

pub use answer::OutputCheck;
pub use chain::{Call, Chain, Folded, Handler, HandlerRun, Next};
pub use fold::{ApplyError, apply, apply_to, pointer};
pub use payload::{Context, Empty, HookInput};
pub use points::{ALIASES, HookPoint, is_alias};
pub use rights::Rights;
pub use spec::{Deadline, Failure, Field, Kind, Phase, PointSpec};
