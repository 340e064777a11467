//! Sending the prompt, and completion.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use outrigger_client::input::slash_command;
use outrigger_protocol::message::{PartKind, TextPart};
use outrigger_protocol::session::{PartInput, PromptInput};
use outrigger_protocol::turn::{CommandCall, TurnBody};
use serde_json::json;

use super::{App, PendingInput};
use crate::render::theme::Role;
use crate::state::effect::{Effect, Then};
use crate::state::picker::{Completion, Item, fuzzy};

/// Maximum number of completions.
const MAX_COMPLETIONS: usize = 100;
/// Maximum number of prompts that can be recalled.
pub(crate) const MAX_HISTORY: usize = 500;

impl App {
    /// Sends the prompt.
    pub(crate) fn submit(&mut self) -> Vec<Effect> {
        if self.editor.text().trim().is_empty() {
            return Vec::new();
        }
        // A backslash before the key is a new line, for terminals that send no other key for it.
        if self.editor.text().ends_with('\\') && self.editor.cursor() == self.editor.text().len() {
            let end = self.editor.cursor() - 1;
            self.editor.replace_from(end, "\n");
            return Vec::new();
        }
        let (text, mut effects) = self.written();
        self.unstored = Some(text.clone());
        effects.extend(self.go_to_end());
        effects.extend(self.send(&text));
        effects
    }

    /// Queues the prompt until the turn ends.
    pub(crate) fn queue(&mut self) -> Vec<Effect> {
        if !self.is_busy() || self.editor.text().trim().is_empty() {
            return self.submit();
        }
        let (text, effects) = self.written();
        self.queued.push_back(text);
        effects
    }

    /// Sends the next queued prompt after the end of a turn.
    pub(crate) fn send_queued(&mut self) -> Vec<Effect> {
        match self.queued.pop_front() {
            Some(text) => self.send(&text),
            None => Vec::new(),
        }
    }

    /// Returns queued prompts to the user after a turn failed.
    pub(crate) fn give_back_queued(&mut self) {
        let draft = self.editor.text().to_owned();
        let mut all: Vec<String> = self.queued.drain(..).collect();
        if !all.is_empty() {
            all.extend((!draft.is_empty()).then_some(draft));
            self.editor.set(all.join("\n\n"));
        }
    }

    /// Returns the prompt to the user, which the agent refused before it stored it.
    pub(crate) fn give_back_unstored(&mut self) {
        if let Some(text) = self.unstored.take()
            && self.editor.text().is_empty()
        {
            self.editor.set(text);
        }
    }

    /// Takes the prompt's text, and stores it for later runs.
    fn written(&mut self) -> (String, Vec<Effect>) {
        let text = self.attachments.unfold(&self.editor.take());
        self.recalled = None;
        self.completion = None;
        if let Some(vi) = &mut self.vi {
            vi.insert();
        }
        let mut effects = Vec::new();
        if self.history.last() != Some(&text) {
            self.history.push(text.clone());
            effects.push(Effect::Remember(text.clone()));
        }
        let surplus = self.history.len().saturating_sub(MAX_HISTORY);
        self.history.drain(..surplus);
        (text, effects)
    }

    /// Executes a prompt: a shell line, a command, or text for the model.
    pub(crate) fn send(&mut self, text: &str) -> Vec<Effect> {
        if let Some(line) = text.strip_prefix('!') {
            return self.dispatch(PendingInput::Shell(line.trim().to_owned()));
        }
        if let Some((name, words)) = slash_command(text)
            && !name.is_empty()
        {
            return self.run_command(name, words);
        }
        let mut prompt = self.prompt();
        prompt.parts.push(PartInput {
            id: None,
            kind: PartKind::Text(TextPart {
                text: text.to_owned(),
                ..TextPart::default()
            }),
        });
        prompt.parts.extend(self.images_of(text));
        let attached = std::mem::take(&mut self.attached);
        let folder = self
            .session
            .as_ref()
            .map_or(self.folder.clone(), |it| it.directory.clone());
        for path in attached
            .iter()
            .filter(|path| text.contains(&format!("@{path}")))
        {
            let url = format!("file://{}/{path}", folder.trim_end_matches('/'));
            let file = json!({ "mime": "text/plain", "filename": path, "url": url });
            let file = file.as_object().cloned().unwrap_or_default();
            prompt.parts.push(PartInput {
                id: None,
                kind: PartKind::File(file),
            });
        }
        self.dispatch(PendingInput::Turn(Box::new(TurnBody::Prompt(prompt))))
    }

    /// Runs a command of the project.
    pub(crate) fn project_command(&mut self, name: &str, words: &str) -> Vec<Effect> {
        let call = CommandCall {
            name: name.to_owned(),
            arguments: words.to_owned(),
        };
        let body = TurnBody::Command(call, self.prompt());
        self.dispatch(PendingInput::Turn(Box::new(body)))
    }

    /// Builds a prompt with the agent and the model of the conversation.
    fn prompt(&self) -> PromptInput {
        PromptInput::for_conversation(self.agent.as_ref(), self.model.as_ref())
    }

    fn dispatch(&mut self, what: PendingInput) -> Vec<Effect> {
        let Some(session) = &self.session else {
            let is_first = self.waiting.is_empty();
            self.waiting.push(what);
            return if self.is_ready && is_first && !self.is_entering {
                vec![self.make_session()]
            } else {
                Vec::new()
            };
        };
        let id = session.id.to_string();
        vec![self.effect_of(what, &id)]
    }

    pub(crate) fn make_session(&self) -> Effect {
        Effect::Call {
            method: "POST",
            path: "/session".to_owned(),
            body: Some(json!({})),
            then: Then::Made,
        }
    }

    /// Sends what waited for the session.
    pub(crate) fn release(&mut self, id: &str) -> Vec<Effect> {
        let waiting = std::mem::take(&mut self.waiting);
        waiting
            .into_iter()
            .map(|it| self.effect_of(it, id))
            .collect()
    }

    fn effect_of(&mut self, what: PendingInput, id: &str) -> Effect {
        match what {
            PendingInput::Turn(body) => {
                self.turns += 1;
                Effect::Call {
                    method: "POST",
                    path: format!("/outrigger/session/{id}/turn"),
                    body: serde_json::to_value(body).ok(),
                    then: Then::Over(id.to_owned()),
                }
            }
            PendingInput::Shell(command) => {
                let agent = self.agent.clone().unwrap_or_else(|| "build".to_owned());
                Effect::Call {
                    method: "POST",
                    path: format!("/session/{id}/shell"),
                    body: Some(json!({ "agent": agent, "command": command })),
                    then: Then::Shell,
                }
            }
        }
    }

    /// Recalls the previous or next prompt; within a text of several rows, moves by a row.
    pub(crate) fn recall(&mut self, back: bool) {
        let width = crate::view::prompt_width(self);
        if self.editor.vertical(back, width) {
            return;
        }
        let count = self.history.len();
        let at = match (&self.recalled, back) {
            (None, true) => count.checked_sub(1),
            (Some((at, _)), true) => at.checked_sub(1),
            (None, false) => None,
            (Some((at, _)), false) if at + 1 < count => Some(at + 1),
            (Some(_), false) => {
                if let Some((_, draft)) = self.recalled.take() {
                    self.editor.set(draft);
                }
                return;
            }
        };
        if let Some(at) = at
            && let Some(text) = self.history.get(at).cloned()
        {
            let draft = match self.recalled.take() {
                Some((_, draft)) => draft,
                None => self.editor.text().to_owned(),
            };
            self.editor.set(text);
            self.recalled = Some((at, draft));
        }
    }

    /// Looks for completions of the word at the cursor: a command at the start, a file after `@`.
    pub(crate) fn complete(&mut self) -> Vec<Effect> {
        self.completion = None;
        let (before, _) = self.editor.around();
        if let Some(name) = before.strip_prefix('/')
            && !name.contains(char::is_whitespace)
        {
            let all = self.all_commands();
            let found = fuzzy(name, all.iter().map(|it| it.value.clone()));
            let items: Vec<Item> = found
                .into_iter()
                .take(MAX_COMPLETIONS)
                .filter_map(|at| all.get(at).cloned())
                .collect();
            self.completion = (!items.is_empty()).then_some(Completion {
                from: 0,
                items,
                at: 0,
            });
            let load = self.commands.is_empty() && self.is_ready;
            return if load {
                vec![Effect::Call {
                    method: "GET",
                    path: "/command".to_owned(),
                    body: None,
                    then: Then::Commands,
                }]
            } else {
                Vec::new()
            };
        }
        let Some(at) = before.rfind('@') else {
            return Vec::new();
        };
        let word = before.get(at + 1..).unwrap_or_default();
        let begins = before
            .get(..at)
            .is_some_and(|it| it.is_empty() || it.ends_with(char::is_whitespace));
        if !begins || word.contains(char::is_whitespace) || !self.is_ready {
            return Vec::new();
        }
        let path = format!("/find/file?query={}", outrigger_client::encoded(word));
        vec![Effect::Call {
            method: "GET",
            path,
            body: None,
            then: Then::Files(before.to_owned()),
        }]
    }

    /// Handles the files found for an earlier text.
    pub(crate) fn found_files(&mut self, before: &str, files: &[String]) {
        let (now, _) = self.editor.around();
        let Some(from) = now.rfind('@').filter(|_| now == before) else {
            return;
        };
        let files = files.iter().take(MAX_COMPLETIONS);
        let items: Vec<Item> = files
            .map(|it| Item::new(format!("@{it}"), it, ""))
            .collect();
        self.completion = (!items.is_empty()).then_some(Completion { from, items, at: 0 });
    }

    /// Handles keys of an open completion; `None` for those of the prompt.
    pub(crate) fn completion_key(&mut self, key: KeyEvent) -> Option<Vec<Effect>> {
        let completion = self.completion.as_mut()?;
        let count = completion.items.len();
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Up => completion.at = (completion.at + count - 1) % count,
            KeyCode::Char('p') if control => completion.at = (completion.at + count - 1) % count,
            KeyCode::Down => completion.at = (completion.at + 1) % count,
            KeyCode::Char('n') if control => completion.at = (completion.at + 1) % count,
            KeyCode::Esc => self.completion = None,
            KeyCode::Tab => self.take_completion(),
            KeyCode::Enter if key.modifiers.is_empty() => {
                // Enter on a completed command runs it.
                let chosen = completion
                    .items
                    .get(completion.at)
                    .map(|it| it.value.clone())?;
                let is_command = !chosen.starts_with('@');
                self.take_completion();
                return Some(if is_command {
                    self.submit()
                } else {
                    Vec::new()
                });
            }
            _ => {
                self.completion = None;
                return None;
            }
        }
        Some(Vec::new())
    }

    fn take_completion(&mut self) {
        let Some(completion) = self.completion.take() else {
            return;
        };
        let Some(item) = completion.items.get(completion.at) else {
            return;
        };
        match item.value.strip_prefix('@') {
            Some(path) => {
                self.attached.push(path.to_owned());
                self.editor
                    .replace_from(completion.from, &format!("@{path} "));
            }
            None => self
                .editor
                .replace_from(completion.from, &format!("/{} ", item.value)),
        }
    }

    /// Shows why something cannot be done now.
    pub(crate) fn refuse(&mut self, text: &str) -> Vec<Effect> {
        self.say(text, Role::Warn);
        Vec::new()
    }
}
