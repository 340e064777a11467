//! Questions to the user: which are asked, and the keys that answer them.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use outrigger_client::Display;
use outrigger_protocol::event::Event;
use outrigger_protocol::permission::PermissionRequest;
use outrigger_protocol::question::QuestionRequest;
use serde_json::{Value, json};

use super::App;
use crate::render::theme::Role;
use crate::state::actions::Action;
use crate::state::asking::{Dialog, Inquiry};
use crate::state::editor::{Editor, To};
use crate::state::effect::{Effect, Then};

impl App {
    /// Handles an event that asks a question or answers one.
    pub(crate) fn ask_of(&mut self, event: &Event, now: u64) -> Vec<Effect> {
        match event {
            Event::PermissionAsked(request) => self.ask_permission(request, now),
            Event::PermissionReplied { request_id, .. } => {
                self.asking.settled(request_id.as_str(), now)
            }
            Event::QuestionAsked(request) => self.ask_question(request, now),
            Event::QuestionReplied { request_id, .. }
            | Event::QuestionRejected { request_id, .. } => {
                self.asking.settled(request_id.as_str(), now);
            }
            _ => {}
        }
        Vec::new()
    }

    /// Questions of subagents are for this user, too; those of other sessions at a server are not.
    pub(crate) fn ask_permission(&mut self, request: &PermissionRequest, now: u64) {
        if self.is_local || self.is_ours(&request.session_id) {
            let display = Display::of(request, self.is_local);
            self.asking
                .ask(Dialog::Permission(Box::new(request.clone()), display), now);
        }
    }

    pub(crate) fn ask_question(&mut self, request: &QuestionRequest, now: u64) {
        if self.is_local || self.is_ours(&request.session_id) {
            let inquiry = Inquiry {
                request: request.clone(),
                answers: Vec::new(),
                chosen: Vec::new(),
                at: 0,
            };
            self.asking.ask(Dialog::Question(Box::new(inquiry)), now);
        }
    }

    /// Handles a key for the displayed question.
    pub(crate) fn answer_key(&mut self, key: KeyEvent, now: u64) -> Vec<Effect> {
        if self.asking.words.is_some() {
            return self.words_key(key, now);
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if let Some(effects) = self.scroll_behind(key) {
            return effects;
        }
        match key.code {
            KeyCode::Up if !self.is_inquiry() => {
                self.asking.scroll = self.asking.scroll.saturating_sub(1)
            }
            KeyCode::Down if !self.is_inquiry() => self.asking.scroll += 1,
            KeyCode::PageUp => self.asking.scroll = self.asking.scroll.saturating_sub(10),
            KeyCode::PageDown => self.asking.scroll += 10,
            KeyCode::Char('v' | 'd') if !control && !self.is_inquiry() => {
                self.asking.is_open = !self.asking.is_open;
                self.asking.scroll = 0;
            }
            KeyCode::Up | KeyCode::Down => self.inquiry_arrow(key.code),
            _ => {
                return match self.asking.shown() {
                    Some(Dialog::Permission(..)) => self.permission_key(key, now),
                    Some(Dialog::Question(_)) => self.inquiry_key(key, now),
                    Some(Dialog::Start(_)) => self.start_key(key, now),
                    None => Vec::new(),
                };
            }
        }
        Vec::new()
    }

    /// Scrolls the conversation while a question is shown: page keys where the question fits on the screen, and all that have
    /// no meaning in it.
    fn scroll_behind(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        let is_plain = matches!(
            key.code,
            KeyCode::Up | KeyCode::Down | KeyCode::PageUp | KeyCode::PageDown
        ) && key.modifiers.is_empty();
        let is_page = matches!(key.code, KeyCode::PageUp | KeyCode::PageDown);
        if is_plain && !(is_page && crate::view::question_fits(self)) {
            return None;
        }
        let actions: Vec<Action> = self.keymap.actions(false, &key).collect();
        let scrolls = actions.into_iter().find(|it| {
            use Action::*;
            matches!(
                it,
                PageUp | PageDown | HalfPageUp | HalfPageDown | LineUp | LineDown | First | Last
            )
        })?;
        self.act(scrolls, 0)
    }

    /// Takes a letter that answers nothing as the beginning of a prompt: those that follow it at once do not answer, either.
    fn typed_at_question(&mut self, key: KeyEvent, now: u64) {
        if let KeyCode::Char(c) = key.code
            && !(key.modifiers).intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
            && !c.is_whitespace()
        {
            self.editor.insert(c.encode_utf8(&mut [0; 4]));
            self.asking.is_typed_over(now);
        }
    }

    fn is_inquiry(&self) -> bool {
        matches!(self.asking.shown(), Some(Dialog::Question(_)))
    }

    fn permission_key(&mut self, key: KeyEvent, now: u64) -> Vec<Effect> {
        let Some(Dialog::Permission(request, _)) = self.asking.shown() else {
            return Vec::new();
        };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let id = request.id.clone();
        let said_no = matches!(key.code, KeyCode::Char('n') | KeyCode::Esc)
            || control && key.code == KeyCode::Char('c');
        let reply = |reply: &str| {
            vec![call(
                &format!("/permission/{id}/reply"),
                json!({ "reply": reply }),
                Then::Nothing,
            )]
        };
        let effects = match key.code {
            KeyCode::Char('y') if !control => reply("once"),
            KeyCode::Char('a') if !control && !request.always.is_empty() => reply("always"),
            KeyCode::Char('g') if !control && self.is_local && request.missing_grant.is_some() => {
                vec![call(
                    &format!("/outrigger/permission/{id}/grant"),
                    json!({}),
                    Then::Granted,
                )]
            }
            KeyCode::Char('n') if !control => reply("reject"),
            KeyCode::Esc => reply("reject"),
            KeyCode::Char('c') if control => reply("reject"),
            KeyCode::Char('i') | KeyCode::Tab if !control => {
                self.asking.words = Some(Editor::default());
                return Vec::new();
            }
            _ => {
                self.typed_at_question(key, now);
                return Vec::new();
            }
        };
        self.said_no |= said_no;
        self.asking.take(now);
        effects
    }

    fn start_key(&mut self, key: KeyEvent, now: u64) -> Vec<Effect> {
        let Some(Dialog::Start(ask)) = self.asking.shown() else {
            return Vec::new();
        };
        let id = ask.id;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let yes = match key.code {
            KeyCode::Char('y') if !control => true,
            KeyCode::Char('n') | KeyCode::Esc => false,
            KeyCode::Char('c') if control => false,
            _ => {
                self.typed_at_question(key, now);
                return Vec::new();
            }
        };
        self.asking.take(now);
        vec![Effect::Answer(id, yes)]
    }

    fn inquiry_arrow(&mut self, code: KeyCode) {
        if let Some(Dialog::Question(inquiry)) = self.asking.shown_mut() {
            let count = inquiry.question().map_or(0, |it| it.options.len());
            match code {
                KeyCode::Up => inquiry.at = inquiry.at.saturating_sub(1),
                KeyCode::Down => inquiry.at = (inquiry.at + 1).min(count.saturating_sub(1)),
                _ => {}
            }
        }
    }

    fn inquiry_key(&mut self, key: KeyEvent, now: u64) -> Vec<Effect> {
        let Some(Dialog::Question(inquiry)) = self.asking.shown_mut() else {
            return Vec::new();
        };
        let Some(question) = inquiry.question() else {
            return Vec::new();
        };
        let (count, several) = (question.options.len(), question.multiple == Some(true));
        let custom = question.custom != Some(false) || count == 0;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => return self.reject(now),
            KeyCode::Char('c') if control => return self.reject(now),
            KeyCode::Char(' ') if several => {
                match inquiry.chosen.iter().position(|it| *it == inquiry.at) {
                    Some(at) => drop(inquiry.chosen.remove(at)),
                    None => inquiry.chosen.push(inquiry.at),
                }
            }
            KeyCode::Char(c @ '1'..='9') => {
                let at = usize::from(c as u8 - b'1');
                if at < count {
                    inquiry.at = at;
                }
            }
            KeyCode::Enter if count > 0 => {
                let answer = inquiry.choice();
                return self.answer_question(answer, now);
            }
            KeyCode::Char('i') | KeyCode::Tab | KeyCode::Enter if custom => {
                self.asking.words = Some(Editor::default());
            }
            _ => {}
        }
        Vec::new()
    }

    fn reject(&mut self, now: u64) -> Vec<Effect> {
        let Some(Dialog::Question(inquiry)) = self.asking.take(now) else {
            return Vec::new();
        };
        let path = format!("/question/{}/reject", inquiry.request.id);
        vec![call(&path, json!({}), Then::Nothing)]
    }

    fn answer_question(&mut self, answer: Vec<String>, now: u64) -> Vec<Effect> {
        let Some(Dialog::Question(inquiry)) = self.asking.shown_mut() else {
            return Vec::new();
        };
        if !inquiry.answer(answer) {
            return Vec::new();
        }
        let path = format!("/question/{}/reply", inquiry.request.id);
        let body = json!({ "answers": inquiry.answers });
        self.asking.take(now);
        vec![call(&path, body, Then::Nothing)]
    }

    /// Handles a key while a text answer is written.
    fn words_key(&mut self, key: KeyEvent, now: u64) -> Vec<Effect> {
        let Some(words) = &mut self.asking.words else {
            return Vec::new();
        };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => self.asking.words = None,
            KeyCode::Char('c') if control => self.asking.words = None,
            KeyCode::Backspace => words.delete(To::Left),
            KeyCode::Left => words.go(To::Left),
            KeyCode::Right => words.go(To::Right),
            KeyCode::Char('u') if control => words.delete(To::LineStart),
            KeyCode::Char('w') if control => words.delete(To::WordLeft),
            KeyCode::Char(c) if !control => words.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Enter => {
                let text = words.take();
                self.asking.words = None;
                return match self.asking.shown() {
                    Some(Dialog::Question(_)) => self.answer_question(vec![text], now),
                    _ => self.refuse_with(&text, now),
                };
            }
            _ => {}
        }
        Vec::new()
    }

    /// Refuses with a text for the model.
    fn refuse_with(&mut self, text: &str, now: u64) -> Vec<Effect> {
        let Some(Dialog::Permission(request, _)) = self.asking.take(now) else {
            return Vec::new();
        };
        let message = if text.trim().is_empty() {
            Value::Null
        } else {
            json!(text)
        };
        let path = format!("/permission/{}/reply", request.id);
        vec![call(
            &path,
            json!({ "reply": "reject", "message": message }),
            Then::Nothing,
        )]
    }

    /// Handles the result of a grant.
    pub(crate) fn granted(&mut self, answer: &Value) {
        match answer["file"].as_str() {
            Some(file) => self.say(&format!("granted in {file}"), Role::Good),
            None => self.say("nothing was granted", Role::Warn),
        }
    }
}

fn call(path: &str, body: Value, then: Then) -> Effect {
    Effect::Call {
        method: "POST",
        path: path.to_owned(),
        body: Some(body),
        then,
    }
}
