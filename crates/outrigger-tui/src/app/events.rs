//! Events of the agent.

use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::message::MessageInfo;

use serde_json::Value;

use super::{App, MAX_BLOCKS, SlowHook};
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
        self.note_slow_hook(&event.event, now);
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

    /// Remembers for which hook the session, or a subagent of it, waits.
    fn note_slow_hook(&mut self, event: &Event, now: u64) {
        let Event::Custom(event) = event else { return };
        let text = |name: &str| event.properties.get(name).and_then(Value::as_str);
        let (Some(plugin), Some(hook)) = (text("plugin"), text("hook")) else {
            return;
        };
        let is_ours = text("sessionID").is_some_and(|id| self.is_ours(&id.into()));
        if event.kind != "outrigger.plugin.waiting" || !is_ours {
            return;
        }
        let is_over = event.properties.get("over") == Some(&Value::Bool(true));
        let waited = event.properties.get("ms").and_then(Value::as_u64);
        self.slow_hook = (!is_over).then(|| SlowHook {
            plugin: plugin.to_owned(),
            hook: hook.to_owned(),
            since: now.saturating_sub(waited.unwrap_or_default()),
        });
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
