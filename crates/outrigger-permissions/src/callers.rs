//! Which agents called the agent of a session as their subagent: it stays within what they were granted, and their routes are its own.

use std::collections::HashMap;
use std::sync::Mutex;

use outrigger_protocol::id::SessionId;
use outrigger_protocol::session::Session;
use outrigger_workspace::sync::lock;

/// How deep sessions of subagents are followed.
const MAX_DEPTH: usize = 32;

/// The callers of each session, as long as this process runs.
#[derive(Debug, Default)]
pub struct Callers(Mutex<HashMap<SessionId, Vec<String>>>);

impl Callers {
    /// Those of a session, the nearest last. Of a session that another process began, the agents that answered last in those above it.
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

    /// These have called the agent of this session, too.
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
