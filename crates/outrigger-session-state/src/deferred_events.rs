//! Time of publication of a step's events. They are stored at once; two kinds are published like OpenCode, which creates them
//! beside the turn: the results of a subagent's session, after the end of the call that started it, and the snapshot that a step
//! began with, not as a separate event.

use std::collections::BTreeMap;
use std::sync::Mutex;

use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::PartKind;
use outrigger_protocol::turn::Input;
use outrigger_stdx::sync::lock;

/// Sessions that callers wait for, and events that wait for their callers.
#[derive(Debug, Default)]
pub struct DeferredEvents {
    /// Parent of each child.
    awaited: Mutex<BTreeMap<SessionId, SessionId>>,
    /// Events by parent.
    held: Mutex<BTreeMap<SessionId, Vec<BusEvent>>>,
}

/// Guard while a parent waits for a child.
pub struct Awaited<'a>(&'a DeferredEvents, SessionId);

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        lock(&self.0.awaited).remove(&self.1);
    }
}

impl DeferredEvents {
    /// Records that a call of `parent` waits for a turn of `child`.
    pub fn awaits(&self, child: &SessionId, parent: &SessionId) -> Awaited<'_> {
        lock(&self.awaited).insert(child.clone(), parent.clone());
        Awaited(self, child.clone())
    }

    /// Returns the events of a step that are published at once; those after a child's `session.idle` are kept for its parent.
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

    /// Takes the events kept for a session.
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
