//! Hook points and chains (invariant 3): the one table of points, and the one way to run a chain.

mod chain;
mod fold;
mod points;
mod rights;

pub use chain::{Call, Chain, Folded, Handler, HandlerRun, Next, OutputCheck};
pub use fold::{ApplyError, apply, apply_to, pointer};
pub use points::{
    ALIASES, Deadline, Failure, Field, Kind, POINTS, Phase, Point, by_hook, canonical_hook,
    is_alias, point,
};
pub use rights::Rights;
