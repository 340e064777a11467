//! Origins of calls to custom points: the chains whose handlers run in the plugin's process now.

use outrigger_sandbox::process_time::Instant;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use outrigger_protocol::id::{SessionId, TurnId};
use outrigger_stdx::sync::lock;

/// A handler, or a tool, that may reach points of its plugin.
#[derive(Clone, Debug, Default)]
pub struct Link {
    /// Index of the plugin.
    pub plugin: usize,
    /// Points of plugins in progress above it, outermost first.
    pub path: Vec<&'static str>,
    /// Number of plugin events, and of the points before them, that led to it.
    pub depth: u32,
    /// Session that it belongs to.
    pub session: Option<SessionId>,
    /// Turn that it belongs to.
    pub turn: Option<TurnId>,
    /// Step at which the chain of its handler was reached.
    pub step: Option<String>,
    /// Its own deadline.
    pub by: Option<Instant>,
}

/// All links, by number. Only the process that a number was made for knows it, and it is forgotten when its handler has
/// ended.
#[derive(Default)]
pub struct Links {
    next: AtomicU64,
    open: Arc<Mutex<HashMap<u64, Link>>>,
}

/// Forgets a link when dropped.
pub struct Opened {
    /// Number of the link.
    pub number: u64,
    open: Arc<Mutex<HashMap<u64, Link>>>,
}

impl Link {
    /// Returns the number of events and points of plugins that led to it.
    pub fn deep(&self) -> usize {
        let depth = usize::try_from(self.depth).unwrap_or(usize::MAX);
        depth.saturating_add(self.path.len())
    }
}

impl Links {
    /// Registers a link; it lasts until the guard is dropped.
    pub fn open(&self, link: Link) -> Opened {
        let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let open = Arc::clone(&self.open);
        lock(&open).insert(number, link);
        Opened { number, open }
    }

    /// Returns the link of that number, if it is this plugin's.
    pub fn get(&self, number: u64, plugin: usize) -> Option<Link> {
        let open = lock(&self.open);
        open.get(&number)
            .filter(|link| link.plugin == plugin)
            .cloned()
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        lock(&self.open).remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_bound_to_its_plugin_and_its_handler() {
        let links = Links::default();
        let link = Link {
            plugin: 3,
            path: vec!["a/b.c"],
            ..Link::default()
        };
        let opened = links.open(link);
        assert_eq!(links.get(opened.number, 3).unwrap().path, ["a/b.c"]);
        assert!(links.get(opened.number, 4).is_none());
        let number = opened.number;
        drop(opened);
        assert!(links.get(number, 3).is_none());
    }
}
