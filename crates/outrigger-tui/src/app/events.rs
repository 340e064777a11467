//! Events of the agent.

use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::message::MessageInfo;

use super::{App, MAX_BLOCKS};
use crate::state::effect::Effect;

impl App {
    /// Handles an event of the agent.
    pub(super) fn on_event(&mut self, event: &BusEvent, now: u64) -> Vec<Effect> {
        if let Event::SessionCreated { session_id, info } = &event.event
            && info
                .parent_id
                .as_ref()
                .is_some_and(|parent| self.is_ours(parent))
        {
            self.children.insert(session_id.clone());
        }
        let mut effects = self.ask_of(&event.event, now);
        let own = self.session.as_ref().map(|it| &it.id);
        if event.event.session_id().is_none() || event.event.session_id() != own {
            return effects;
        }
        match &event.event {
            Event::SessionUpdated { info, .. } => {
                let was = self.session.as_ref().and_then(|it| it.revert.clone());
                let is = info.revert.clone();
                self.session = Some(info.as_ref().clone());
                if was != is {
                    effects.extend(self.reload());
                }
            }
            Event::SessionDeleted { .. } => self.leave_session(),
            Event::MessageUpdated { info, .. } => {
                if matches!(**info, MessageInfo::User(_)) {
                    self.unstored = None;
                }
                self.meter(info);
            }
            _ => {}
        }
        // Events after messages that are not in memory are fetched with them.
        let is_of_message = matches!(
            event.event,
            Event::MessageUpdated { .. } | Event::PartUpdated { .. } | Event::PartDelta { .. }
        );
        if !(self.has_newer && is_of_message) {
            self.conversation.on(&event.event);
        }
        self.remember_until_reload(&event.event);
        if !self.is_busy() && !self.queued.is_empty() {
            effects.extend(self.send_queued());
        }
        if self.scroll.follows() && self.conversation.blocks().len() > MAX_BLOCKS {
            self.conversation.keep_newest(MAX_BLOCKS / 2);
            self.has_older = true;
        }
        effects
    }

    /// Keeps what changed messages while they are being fetched. Pieces of a text are not: its end has all of it.
    fn remember_until_reload(&mut self, event: &Event) {
        let changes = matches!(
            event,
            Event::MessageUpdated { .. }
                | Event::MessageRemoved { .. }
                | Event::PartUpdated { .. }
                | Event::PartRemoved { .. }
        );
        let (awaited, events) = &mut self.since_reload;
        if changes && *awaited > 0 && events.len() < MAX_BLOCKS {
            events.push(event.clone());
        }
    }

    /// Records how full the model's context is.
    pub(crate) fn meter(&mut self, info: &MessageInfo) {
        if let MessageInfo::Assistant(answer) = info {
            let tokens = &answer.tokens;
            let used = tokens.input
                + tokens.output
                + tokens.reasoning
                + tokens.cache.read
                + tokens.cache.write;
            if used > 0 {
                self.context = Some((used, format!("{}/{}", answer.provider_id, answer.model_id)));
            }
        }
    }
}
