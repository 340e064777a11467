//! From where a plugin reaches a point of its own: the chains whose handlers run in its process now.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use outrigger_files::sync::lock;
use outrigger_protocol::id::{SessionId, TurnId};

/// A handler, or a tool, that may reach points of its plugin.
#[derive(Clone, Debug, Default)]
pub struct Link {
    /// Which plugin's it is, by index.
    pub plugin: usize,
    /// Points of plugins that are under way above it, the outermost first.
    pub path: Vec<&'static str>,
    /// Out of how many events of plugins it comes, and the points that those came from.
    pub depth: u32,
    /// The session that it belongs to.
    pub session: Option<SessionId>,
    /// The turn that it belongs to.
    pub turn: Option<TurnId>,
    /// The step at which the chain of its handler was reached.
    pub step: Option<String>,
    /// When it must have answered itself.
    pub by: Option<Instant>,
}

/// All of them, by number. A number is known to the process that it was made for and to nobody else, and forgotten when its
/// handler has ended.
#[derive(Default)]
pub struct Links {
    next: AtomicU64,
    open: Arc<Mutex<HashMap<u64, Link>>>,
}

/// Forgets a link.
pub struct Opened {
    /// Its number.
    pub number: u64,
    open: Arc<Mutex<HashMap<u64, Link>>>,
}

impl Link {
    /// Out of how many events and points of plugins it comes.
    pub fn deep(&self) -> usize {
        let depth = usize::try_from(self.depth).unwrap_or(usize::MAX);
        depth.saturating_add(self.path.len())
    }
}

impl Links {
    /// A number for a link, until the guard is dropped.
    pub fn open(&self, link: Link) -> Opened {
        let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let open = Arc::clone(&self.open);
        lock(&open).insert(number, link);
        Opened { number, open }
    }

    /// The link of that number, if it is this plugin's.
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
    fn a_number_is_its_plugins_and_ends_with_its_handler() {
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
