//! Custom points in a chain: the points that it is reached from, and their remaining time.

use std::time::Duration;

use super::Drive;
use crate::custom_points::links::{Link, Opened};
use outrigger_plugin_registry::Bound;
use outrigger_sandbox::process_time::Instant;

impl Drive<'_> {
    /// Opens a link for a handler whose plugin may reach its custom points: what it reaches is known to come from here.
    pub(super) fn link(&self, bound: &Bound, deadline: Duration) -> Option<Opened> {
        if !self.host.registry.declares_any(bound.plugin) {
            return None;
        }
        let mut path = self.context.path.clone();
        if self.point.is_declared() {
            path.push(self.point.name());
        }
        Some(self.host.links.open(Link {
            plugin: bound.plugin,
            path,
            depth: self.context.depth,
            session: self.context.session.clone(),
            turn: self.context.turn.clone(),
            step: self.context.step.clone(),
            by: Instant::now().checked_add(deadline),
        }))
    }

    /// Returns the deadline of a handler: its own, limited to most of the remaining time of the point that reached it. So
    /// the handler that hangs misses its deadline first, and its caller is not blamed.
    pub(super) fn left(&self, deadline: Duration) -> Duration {
        let left = |by: Instant| by.saturating_duration_since(Instant::now()).mul_f64(0.8);
        self.context
            .by
            .map_or(deadline, |by| left(by).min(deadline))
    }
}
