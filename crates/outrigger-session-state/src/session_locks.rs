//! One lock per session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use outrigger_protocol::id::SessionId;
use outrigger_stdx::sync::lock;

/// One lock per session: prompts are queued.
#[derive(Debug, Default)]
pub struct SessionLocks {
    queues: Mutex<HashMap<SessionId, Arc<tokio::sync::Mutex<()>>>>,
}

/// Number of locks that are kept without checking whether they are held.
const LOCKS: usize = 64;

impl SessionLocks {
    /// Returns the lock of a session.
    pub fn queue(&self, id: &SessionId) -> Arc<tokio::sync::Mutex<()>> {
        let mut queues = lock(&self.queues);
        if queues.len() >= LOCKS {
            queues.retain(|_, queue| Arc::strong_count(queue) > 1);
        }
        Arc::clone(queues.entry(id.clone()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_nobody_holds_is_forgotten() {
        let sessions = SessionLocks::default();
        let id = |n: usize| SessionId(format!("ses_{n}"));
        let held = sessions.queue(&id(0));
        for n in 1..10 * LOCKS {
            drop(sessions.queue(&id(n)));
        }
        assert!(lock(&sessions.queues).len() <= LOCKS);
        assert!(Arc::ptr_eq(&held, &sessions.queue(&id(0))));
    }
}
