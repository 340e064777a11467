//! When the events of a step are published. They are stored at once; two kinds are published as OpenCode does, which makes them
//! beside the turn: what a subagent's session came to, after the end of the call that started it, and the tree of files that a step
//! began with, not by an event of its own.

use std::collections::BTreeMap;
use std::sync::Mutex;

use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::PartKind;
use outrigger_protocol::turn::Input;
use outrigger_workspace::sync::lock;

/// Sessions whose callers wait for them, and events that wait for their callers.
#[derive(Debug, Default)]
pub struct DeferredEvents {
    /// By child, its parent.
    awaited: Mutex<BTreeMap<SessionId, SessionId>>,
    /// By parent.
    held: Mutex<BTreeMap<SessionId, Vec<BusEvent>>>,
}

/// A parent waits for a child while this is there.
pub struct Awaited<'a>(&'a DeferredEvents, SessionId);

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        lock(&self.0.awaited).remove(&self.1);
    }
}

impl DeferredEvents {
    /// A call of `parent` waits for a turn of `child`.
    pub fn awaits(&self, child: &SessionId, parent: &SessionId) -> Awaited<'_> {
        lock(&self.awaited).insert(child.clone(), parent.clone());
        Awaited(self, child.clone())
    }

    /// The events of a step that are published at once; those after a child's `session.idle` are kept for its parent.
    pub fn published_now(
        &self,
        session: &SessionId,
        input: &Input,
        mut events: Vec<BusEvent>,
    ) -> Vec<BusEvent> {
        if matches!(input, Input::FilesTracked { .. }) {
            events.retain(|event| !is_step_start(&event.event));
        }
        let ended = |event: &BusEvent| matches!(event.event, Event::SessionIdle { .. });
        let Some(end) = events.iter().position(ended) else {
            return events;
        };
        let Some(parent) = lock(&self.awaited).get(session).cloned() else {
            return events;
        };
        let deferred = events.split_off(end + 1);
        lock(&self.held).entry(parent).or_default().extend(deferred);
        events
    }

    /// What was kept for a session.
    pub fn release(&self, parent: &SessionId) -> Vec<BusEvent> {
        lock(&self.held).remove(parent).unwrap_or_default()
    }
}

fn is_step_start(event: &Event) -> bool {
    matches!(event, Event::PartUpdated { part, .. } if matches!(part.kind, PartKind::StepStart(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::numbered;

    #[test]
    fn what_a_child_came_to_waits_for_its_caller() {
        let (deferred, child, parent) = (
            DeferredEvents::default(),
            SessionId::from("c"),
            SessionId::from("p"),
        );
        let idle = || {
            numbered(Event::SessionIdle {
                session_id: child.clone(),
            })
        };
        let diff = || {
            numbered(Event::SessionDiff {
                session_id: child.clone(),
                diff: Vec::new(),
            })
        };
        let published = || {
            deferred
                .published_now(&child, &Input::Cancel, vec![idle(), diff()])
                .len()
        };
        assert_eq!(published(), 2, "nobody waits");
        let awaited = deferred.awaits(&child, &parent);
        assert_eq!(published(), 1);
        assert!(deferred.release(&child).is_empty());
        assert_eq!(deferred.release(&parent).len(), 1);
        assert!(deferred.release(&parent).is_empty());
        drop(awaited);
        assert_eq!(published(), 2, "the caller is gone");
    }
}
