//! The bus events of a step.

use outrigger_protocol::event::Event;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::session::Session;
use outrigger_protocol::turn::{Effect, SessionPatch};

use crate::changes::Changes;
use crate::error::AgentError;
use crate::inner::Inner;

/// The bus events of a step's effects, in order. Patches of the session build on each other.
pub(crate) fn events_of(
    inner: &Inner,
    id: &SessionId,
    effects: &[Effect],
    changes: &Changes,
) -> Result<Vec<Event>, AgentError> {
    let mut session: Option<Session> = None;
    let mut events = Vec::new();
    for effect in effects {
        match effect {
            Effect::Publish { event } => events.push(event.clone()),
            Effect::PatchSession { patch } => {
                let before = match session.take() {
                    Some(session) => session,
                    None => inner
                        .store
                        .session(id)?
                        .ok_or_else(|| AgentError::NoSession(id.to_string()))?,
                };
                let mut patched = Inner::patch(before, patch);
                let SessionPatch { summarize, .. } = patch;
                if *summarize {
                    patched.summary = Some(changes.summary());
                }
                events.push(Event::SessionUpdated {
                    session_id: id.clone(),
                    info: Box::new(patched.clone()),
                });
                if *summarize {
                    events.push(Event::SessionDiff {
                        session_id: id.clone(),
                        diff: changes.list(),
                    });
                }
                session = Some(patched);
            }
            _ => {}
        }
    }
    Ok(events)
}
