//! The implementation of key actions.

use serde_json::json;

use super::history::get;
use super::{App, DOUBLE_PRESS_WINDOW_MS};
use crate::render::theme::{Role, Theme};
use crate::state::actions::Action;
use crate::state::editor::To;
use crate::state::effect::{Effect, Then};
use crate::state::picker::{Item, ListKind, Picker};

impl App {
    /// Performs an action; `None` if the key currently has another meaning.
    pub(crate) fn act(&mut self, action: Action, now: u64) -> Option<Vec<Effect>> {
        Some(match action {
            Action::Submit => self.submit(),
            Action::Clear => return Some(self.clear_or_leave(now)),
            Action::Exit if self.editor.is_empty() => vec![Effect::Quit],
            Action::Exit => return None,
            Action::Interrupt => self.interrupt(),
            Action::Leader => {
                self.leader = true;
                Vec::new()
            }
            Action::PageUp
            | Action::PageDown
            | Action::HalfPageUp
            | Action::HalfPageDown
            | Action::LineUp
            | Action::LineDown => {
                let page = crate::view::conversation_height(self).cast_signed();
                let rows = match action {
                    Action::PageUp => 1 - page,
                    Action::PageDown => page - 1,
                    Action::HalfPageUp => -(page / 2),
                    Action::HalfPageDown => page / 2,
                    Action::LineUp => -1,
                    _ => 1,
                };
                self.scroll_by(rows)
            }
            Action::First => self.scroll_by(isize::MIN / 2),
            Action::Last => self.go_to_end(),
            Action::Suspend => vec![Effect::Suspend],
            Action::Edit => self.edit_outside(),
            Action::Queue => self.queue(),
            Action::Thinking => {
                self.thinking = !self.thinking;
                Vec::new()
            }
            Action::Details => {
                self.details = !self.details;
                Vec::new()
            }
            Action::NextAgent => self.cycle_agent(1),
            Action::PreviousAgent => self.cycle_agent(-1),
            Action::Newline
            | Action::Move(_)
            | Action::Delete(_)
            | Action::Yank
            | Action::Undo
            | Action::Redo
            | Action::HistoryPrevious
            | Action::HistoryNext => return self.edit(action),
            other => self.of_session(other),
        })
    }

    /// Performs actions that change the prompt.
    fn edit(&mut self, action: Action) -> Option<Vec<Effect>> {
        match action {
            Action::Newline => self.editor.insert("\n"),
            // In an empty prompt the same keys may scroll the conversation.
            Action::Move(To::LineStart | To::LineEnd) if self.editor.is_empty() => return None,
            Action::Move(to) => self.editor.go(to),
            Action::Delete(to) => {
                if to != To::Left || !self.delete_mark() {
                    self.editor.delete(to);
                }
                return Some(self.complete());
            }
            Action::Yank => self.editor.yank(),
            Action::Undo => self.editor.undo(),
            Action::Redo => self.editor.redo(),
            Action::HistoryPrevious => self.recall(true),
            Action::HistoryNext => self.recall(false),
            _ => return None,
        }
        Some(Vec::new())
    }

    /// Performs actions on the session and its lists.
    fn of_session(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Copy => self.copy(),
            Action::UndoMessage => self.undo_message(),
            Action::RedoMessage => self.redo_message(),
            Action::NewSession => {
                self.leave_session();
                Vec::new()
            }
            Action::Fork => self.fork(None),
            Action::Compact => self.compact(),
            Action::Sessions => self.open_list(ListKind::Sessions),
            Action::Models => self.open_list(ListKind::Models),
            Action::Agents => self.open_list(ListKind::Agents),
            Action::Commands => self.open_list(ListKind::Commands),
            Action::Themes => self.open_list(ListKind::Themes),
            Action::Timeline => self.open_list(ListKind::Timeline),
            Action::Search => self.open_list(ListKind::Search),
            Action::Child => self.open_list(ListKind::Children),
            Action::Parent => self.go_to_parent(),
            Action::HistorySearch => self.open_list(ListKind::History),
            Action::Status => self.open_list(ListKind::Plugins),
            Action::Help => self.open_list(ListKind::Help),
            _ => Vec::new(),
        }
    }

    fn clear_or_leave(&mut self, now: u64) -> Vec<Effect> {
        if !self.editor.is_empty() {
            let text = self.attachments.unfold(&self.editor.take());
            self.recalled = None;
            // A single key must not lose what was written.
            if self.history.last() != Some(&text) {
                self.history.push(text);
            }
            return Vec::new();
        }
        if self.is_busy() {
            return self.interrupt();
        }
        if now < self.leaves_until {
            return vec![Effect::Quit];
        }
        self.leaves_until = now + DOUBLE_PRESS_WINDOW_MS;
        self.say("ctrl+c again leaves", Role::Warn);
        Vec::new()
    }

    fn interrupt(&mut self) -> Vec<Effect> {
        match &self.session {
            Some(session) if self.is_busy() => {
                let path = format!("/outrigger/session/{}/cancel", session.id);
                self.say("interrupting", Role::Warn);
                vec![Effect::Call {
                    method: "POST",
                    path,
                    body: Some(json!({})),
                    then: Then::Nothing,
                }]
            }
            _ => self.go_to_end(),
        }
    }

    fn copy(&mut self) -> Vec<Effect> {
        let Some(answer) = self.conversation.last_answer() else {
            self.say("there is no answer yet", Role::Dim);
            return Vec::new();
        };
        let text = answer.to_owned();
        self.say("the last answer is in the clipboard", Role::Good);
        vec![Effect::Copy(text)]
    }

    /// Requests a change of this session.
    pub(crate) fn session_call(&mut self, what: &str, body: serde_json::Value) -> Vec<Effect> {
        let Some(session) = &self.session else {
            self.say("there is no session yet", Role::Dim);
            return Vec::new();
        };
        vec![Effect::Call {
            method: "POST",
            path: format!("/session/{}/{what}", session.id),
            body: Some(body),
            then: Then::Nothing,
        }]
    }

    /// Continues in a copy of the session, up to this message or of all of it.
    pub(crate) fn fork(&mut self, message: Option<&str>) -> Vec<Effect> {
        let mut effects = self.session_call("fork", json!({ "messageID": message }));
        if let Some(Effect::Call { then, .. }) = effects.first_mut() {
            *then = Then::Enter;
        }
        effects
    }

    /// Returns to the session whose subagent this one is.
    fn go_to_parent(&mut self) -> Vec<Effect> {
        let parent = self.session.as_ref().and_then(|it| it.parent_id.clone());
        let Some(parent) = parent else {
            self.say("this is not a conversation of a subagent", Role::Dim);
            return Vec::new();
        };
        vec![get(format!("/session/{parent}"), Then::Enter)]
    }

    fn cycle_agent(&mut self, by: isize) -> Vec<Effect> {
        if self.agents.is_empty() {
            return Vec::new();
        }
        let now = self.agent.as_deref().unwrap_or_default();
        let at = self
            .agents
            .iter()
            .position(|it| it.value == now)
            .unwrap_or(0);
        let count = self.agents.len().cast_signed();
        let next = (at.cast_signed() + by).rem_euclid(count).cast_unsigned();
        self.agent = self.agents.get(next).map(|it| it.value.clone());
        Vec::new()
    }

    /// Lists the themes, with the current one marked.
    pub(crate) fn themes(&self) -> Picker {
        let items = Theme::NAMES
            .iter()
            .map(|name| Item::new(*name, *name, ""))
            .collect();
        let mut picker = Picker::new(ListKind::Themes, "Theme", items);
        picker.mark(self.theme.name());
        picker
    }
}
