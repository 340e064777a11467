//! Points in a conversation that a revert goes back to, and what it removes for good.

use outrigger_protocol::event::Event;
use outrigger_protocol::id::{MessageId, PartId, SessionId};
use outrigger_protocol::message::{MessageInfo, MessageWithParts, PartKind};
use outrigger_protocol::session::SessionRevert;

/// Returns the point to revert to, by OpenCode's rule: a part with no content before it in its message stands for the
/// message, and an answer stands for the user message that it answers.
#[must_use]
pub fn find(
    messages: &[MessageWithParts],
    wanted: &MessageId,
    part: Option<&PartId>,
) -> Option<SessionRevert> {
    let mut user = None;
    for message in messages {
        let id = message.info.id();
        if matches!(message.info, MessageInfo::User(_)) {
            user = Some(id);
        }
        let mut says = false;
        for candidate in &message.parts {
            let hit = match part {
                Some(part) => candidate.id == *part,
                None => id == wanted,
            };
            if hit {
                let part_id = part.filter(|_| says).cloned();
                let message_id = match (&part_id, user) {
                    (None, Some(user)) => user.clone(),
                    _ => id.clone(),
                };
                return Some(SessionRevert {
                    message_id,
                    part_id,
                    ..SessionRevert::default()
                });
            }
            says |= matches!(candidate.kind, PartKind::Text(_) | PartKind::Tool(_));
        }
    }
    None
}

/// Returns the messages from the point on.
#[must_use]
pub fn from<'m>(
    messages: &'m [MessageWithParts],
    revert: &SessionRevert,
) -> &'m [MessageWithParts] {
    let mut ids = messages.iter().map(|message| message.info.id());
    let at = ids.position(|id| *id == revert.message_id);
    at.and_then(|at| messages.get(at..)).unwrap_or_default()
}

/// Returns whether turns write the message: only there are parts records of what a step did. Parts of a user message come
/// from its sender.
#[must_use]
pub fn is_answer(message: &MessageWithParts) -> bool {
    matches!(message.info, MessageInfo::Assistant(_))
}

/// Returns events that remove messages and parts for good.
#[must_use]
pub fn removals(
    id: &SessionId,
    messages: &[MessageWithParts],
    revert: &SessionRevert,
) -> Vec<Event> {
    let Some(at) = messages
        .iter()
        .position(|message| *message.info.id() == revert.message_id)
    else {
        return Vec::new();
    };
    let stays = usize::from(revert.part_id.is_some());
    let removed = messages
        .iter()
        .skip(at + stays)
        .map(|message| Event::MessageRemoved {
            session_id: id.clone(),
            message_id: message.info.id().clone(),
        });
    let mut events: Vec<Event> = removed.collect();
    if let (Some(part), Some(message)) = (&revert.part_id, messages.get(at)) {
        let rest = message.parts.iter().skip_while(|p| p.id != *part);
        events.extend(rest.map(|part| Event::PartRemoved {
            session_id: id.clone(),
            message_id: message.info.id().clone(),
            part_id: part.id.clone(),
        }));
    }
    events
}
