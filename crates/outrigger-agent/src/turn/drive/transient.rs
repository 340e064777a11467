//! Events of a turn that are published but not stored.

use outrigger_protocol::event::Event;
use outrigger_protocol::message::{PartKind, ToolPart, ToolState};
use outrigger_protocol::turn::EffectId;
use serde_json::Value;

use super::Driver;
use outrigger_session_state::bus::numbered;
use outrigger_stdx::clock::now_ms;

impl Driver {
    /// Publishes a chunk of streamed text.
    pub(super) fn publish_delta(&self, index: u32, delta: String) {
        let Some(turn) = &self.turn else { return };
        let (Some(part_id), Some(message)) = (turn.part_of_block(index), turn.message()) else {
            return;
        };
        let event = Event::PartDelta {
            session_id: self.session_id.clone(),
            message_id: message.id.clone(),
            part_id: part_id.clone(),
            field: "text".into(),
            delta,
        };
        self.state.broadcast(vec![numbered(event)]);
    }

    /// Publishes the part with the output so far. The final result is stored.
    pub(super) fn publish_preview(&self, effect: EffectId, preview: Value) {
        let Some(mut part) = self
            .turn
            .as_ref()
            .and_then(|turn| turn.part_of_call(effect))
            .cloned()
        else {
            return;
        };
        if let PartKind::Tool(ToolPart {
            state: ToolState::Running { metadata, .. },
            ..
        }) = &mut part.kind
        {
            *metadata = Some(preview);
            let event = Event::PartUpdated {
                session_id: self.session_id.clone(),
                part: Box::new(part),
                time: now_ms(),
            };
            self.state.broadcast(vec![numbered(event)]);
        }
    }
}
