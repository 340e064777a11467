//! The part of a long conversation that is in memory: pages are fetched as they come into view, and distant ones are dropped.

use base64::Engine as _;
use outrigger_protocol::message::MessageWithParts;
use serde_json::json;

use super::{App, MAX_BLOCKS, PAGE};
use crate::render::theme::Role;
use crate::state::effect::{Effect, Then};

impl App {
    /// Re-fetches the messages of the session, as many as are loaded.
    pub(crate) fn reload(&mut self) -> Vec<Effect> {
        let Some(session) = &self.session else {
            return Vec::new();
        };
        let id = session.id.to_string();
        let count = self.conversation.messages().max(PAGE);
        // What is read far above stays; the end is fetched when it comes into view.
        let mut effects = if self.has_newer {
            Vec::new()
        } else {
            self.since_reload.0 += 1;
            vec![get(
                format!("/session/{id}/message?limit={count}"),
                Then::Messages(id),
            )]
        };
        effects.extend(Self::open_questions());
        effects
    }

    /// The server answers again: what happened meanwhile is fetched.
    pub(crate) fn reconnected(&mut self) -> Vec<Effect> {
        self.is_lost = false;
        self.say("connected to the server again", Role::Good);
        let mut effects = self.reload();
        effects.push(get("/session/status".to_owned(), Then::Status));
        effects
    }

    /// Scrolls, and fetches what comes into view.
    pub(crate) fn scroll_by(&mut self, rows: isize) -> Vec<Effect> {
        let (shape, height) = (self.shape(), crate::view::conversation_height(self));
        let at_start = self.scroll.by(rows, &mut self.conversation, shape, height);
        if at_start && rows < 0 && self.has_older {
            return self.fetch_older();
        }
        if self.scroll.follows() && self.has_newer {
            return self.go_to_end();
        }
        Vec::new()
    }

    /// Fetches what comes into view on a screen that has grown, and follows the end if that is in view.
    pub(crate) fn fill_screen(&mut self) -> Vec<Effect> {
        let (shape, height) = (self.shape(), crate::view::conversation_height(self));
        let at_start = self.scroll.by(0, &mut self.conversation, shape, height);
        if at_start && self.has_older {
            return self.fetch_older();
        }
        if self.scroll.follows() && self.has_newer {
            return self.go_to_end();
        }
        Vec::new()
    }

    /// Goes to the last message.
    pub(crate) fn go_to_end(&mut self) -> Vec<Effect> {
        self.sought.marked.clear();
        self.scroll.to_end();
        if !std::mem::take(&mut self.has_newer) {
            return Vec::new();
        }
        self.conversation.keep_newest(1);
        self.reload()
    }

    fn fetch_older(&mut self) -> Vec<Effect> {
        let first = self
            .conversation
            .blocks()
            .first()
            .map(|it| it.message.to_string());
        let (Some(session), Some(first)) = (&self.session, first) else {
            return Vec::new();
        };
        // The response arrives before the next request.
        self.has_older = false;
        let id = session.id.to_string();
        let cursor = json!({ "id": first, "time": 0 }).to_string();
        let cursor = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(cursor);
        let path = format!("/session/{id}/message?limit={PAGE}&before={cursor}");
        vec![get(path, Then::Older(id))]
    }

    /// Handles an older page.
    pub(crate) fn older(&mut self, id: &str, messages: Vec<MessageWithParts>) {
        if self.session.as_ref().is_none_or(|it| it.id.as_str() != id) {
            return;
        }
        self.has_older = messages.len() >= PAGE;
        // What is being read does not move.
        if self.scroll.follows()
            && let Some(first) = self.conversation.blocks().first().map(|it| it.id.clone())
        {
            self.scroll.to(&first);
        }
        self.conversation.prepend(messages);
        if self.conversation.blocks().len() > MAX_BLOCKS {
            self.has_newer |= self.conversation.keep_oldest(MAX_BLOCKS / 2);
        }
    }
}

pub(crate) fn get(path: String, then: Then) -> Effect {
    Effect::Call {
        method: "GET",
        path,
        body: None,
        then,
    }
}
