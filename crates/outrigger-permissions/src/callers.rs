//! Chain of parent agents of each session. A subagent is limited to its parents' grants, and uses their routes.

use std::collections::HashMap;
use std::sync::Mutex;

use outrigger_protocol::id::SessionId;
use outrigger_protocol::session::Session;
use outrigger_stdx::sync::lock;

/// Maximum depth of subagent sessions that is followed.
const MAX_DEPTH: usize = 32;

/// Parent agents of each session, kept in memory.
#[derive(Debug, Default)]
pub struct Callers(Mutex<HashMap<SessionId, Vec<String>>>);

impl Callers {
    /// Returns those of a session, the nearest last. For a session that another process started, these are the agents that
    /// answered last in the sessions above it.
    pub fn of(
        &self,
        stored: impl Fn(&SessionId) -> Option<Session>,
        session: &SessionId,
    ) -> Vec<String> {
        let mut found = Vec::new();
        let mut at = session.clone();
        for _ in 0..MAX_DEPTH {
            if let Some(known) = lock(&self.0).get(&at) {
                found.extend(known.iter().rev().cloned());
                break;
            }
            let Some(parent) = stored(&at).and_then(|it| it.parent_id) else {
                break;
            };
            found.extend(stored(&parent).and_then(|it| it.agent));
            at = parent;
        }
        found.reverse();
        found
    }

    /// Adds parent agents of this session.
    pub fn add(&self, session: &SessionId, callers: Vec<String>) {
        let mut all = lock(&self.0);
        let known = all.entry(session.clone()).or_default();
        for caller in callers {
            if !known.contains(&caller) {
                known.push(caller);
            }
        }
    }
}
