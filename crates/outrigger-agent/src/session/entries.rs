//! `session.after_append_entry` (C1): messages that a session received, whichever code path stored them.

use outrigger_kernel::hooks::HookPoint;
use outrigger_kernel::hooks::points::session::after_append_entry;
use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::message::MessageInfo;

use crate::state::AgentState;
use outrigger_session_state::notifications::About;

const POINT: HookPoint = HookPoint::SessionAfterAppendEntry;

/// Returns whether a message is complete: user messages are when stored, model messages later.
fn is_complete(info: &MessageInfo) -> bool {
    match info {
        MessageInfo::User(_) => true,
        MessageInfo::Assistant(message) => message.time.completed.is_some(),
    }
}

impl AgentState {
    /// Returns the messages that these events complete. Called before they are stored: complete messages in the store
    /// were published already.
    pub(crate) fn entries(&self, events: &[BusEvent]) -> Vec<(SessionId, MessageId)> {
        let mut entries = Vec::new();
        if !self.plugins.host.pipeline().has(POINT) {
            return entries;
        }
        for event in events {
            let Event::MessageUpdated { session_id, info } = &event.event else {
                continue;
            };
            let entry = (session_id.clone(), info.id().clone());
            if !is_complete(info) || entries.contains(&entry) {
                continue;
            }
            let before = self.store.message(&entry.0, &entry.1);
            if before.is_ok_and(|it| it.is_none_or(|it| !is_complete(&it.info))) {
                entries.push(entry);
            }
        }
        entries
    }

    /// Notifies plugins of the messages once they are stored.
    pub(crate) fn notify_entries(&self, entries: Vec<(SessionId, MessageId)>) {
        let Some(state) = self.this.upgrade().filter(|_| !entries.is_empty()) else {
            return;
        };
        for (session, message) in entries {
            let Ok(Some(stored)) = self.store.message(&session, &message) else {
                continue;
            };
            let (role, agent) = match &stored.info {
                MessageInfo::User(user) => ("user", &user.agent),
                MessageInfo::Assistant(message) => ("assistant", &message.agent),
            };
            let input = after_append_entry::Input {
                session_id: &session,
                message_id: &message,
                role,
                agent,
            };
            let output = after_append_entry::Output {
                message: &stored.info,
                parts: &stored.parts,
            };
            state.notify_hook(&input, &output, About::Session(session.clone()));
        }
    }
}
