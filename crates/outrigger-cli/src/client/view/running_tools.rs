//! The running tools of a session, which its turn waits for.

use outrigger_protocol::event::Event;
use outrigger_protocol::id::{PartId, SessionId};
use outrigger_protocol::message::{Part, PartKind, ToolState};
use outrigger_protocol::session::SessionStatus;

/// Running tools, in order of their start.
#[derive(Default)]
pub(super) struct RunningTools(Vec<(PartId, String)>);

impl RunningTools {
    /// Records the start or end of a call.
    pub(super) fn note(&mut self, part: &Part) {
        let PartKind::Tool(call) = &part.kind else {
            return;
        };
        let is_known = self.0.iter().any(|(id, _)| *id == part.id);
        match call.state {
            ToolState::Running { .. } if !is_known => {
                self.0.push((part.id.clone(), call.tool.clone()));
            }
            _ if call.state.is_final() => self.0.retain(|(id, _)| *id != part.id),
            _ => {}
        }
    }

    /// Returns what the turn of a session waits for after an event, if that changed.
    pub(super) fn waits_for<'e>(
        &'e self,
        session: &SessionId,
        event: &'e Event,
    ) -> Option<Option<&'e str>> {
        match event {
            Event::SessionStatus { session_id, status } if session_id == session => match status {
                SessionStatus::Idle => Some(None),
                _ => Some(Some("model")),
            },
            Event::PartUpdated {
                session_id, part, ..
            } if session_id == session => match &part.kind {
                PartKind::Tool(call) if !call.state.is_final() => Some(Some(&call.tool)),
                PartKind::Tool(_) => {
                    let running = self.0.last().map(|(_, tool)| tool.as_str());
                    Some(Some(running.unwrap_or("model")))
                }
                _ => None,
            },
            _ => None,
        }
    }
}
