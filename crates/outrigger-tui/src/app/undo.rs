//! Taking prompts back with their changes of files, and bringing them back.

use outrigger_client::ClientError;
use outrigger_protocol::id::MessageId;
use serde_json::json;

use super::App;
use crate::render::theme::Role;
use crate::state::effect::{Effect, Then, Undo};
use crate::state::picker::{Item, ListKind, Picker};

/// Codes of refusals that the user can override: others changed the files since, or the files run later.
const OVERRIDABLE: [&str; 2] = ["agent.conflict", "agent.runs_later"];
/// The choice that overrides the refusal.
const FORCE: &str = "force";

impl App {
    /// Takes back the last prompt that is there, and puts its text into the empty prompt.
    pub(super) fn undo_message(&mut self) -> Vec<Effect> {
        let reverted = self.session.as_ref().and_then(|it| it.revert.as_ref());
        let is_there = |id: &MessageId| reverted.is_none_or(|from| *id < from.message_id);
        let last = self
            .conversation
            .prompts()
            .rev()
            .find(|(id, _)| is_there(id));
        let Some((id, text)) = last.map(|(id, text)| (id.to_string(), text.to_owned())) else {
            self.say("there is no prompt to take back", Role::Dim);
            return Vec::new();
        };
        if self.editor.is_empty() {
            self.editor.set(text);
        }
        self.revert(&id)
    }

    /// Takes back this prompt and all that came after it.
    pub(super) fn revert(&mut self, message: &str) -> Vec<Effect> {
        self.request_undo(Undo {
            route: "revert",
            body: json!({ "messageID": message }),
        })
    }

    /// Brings back what was taken back.
    pub(super) fn redo_message(&mut self) -> Vec<Effect> {
        self.request_undo(Undo {
            route: "unrevert",
            body: json!({}),
        })
    }

    fn request_undo(&mut self, undo: Undo) -> Vec<Effect> {
        let mut effects = self.session_call(undo.route, undo.body.clone());
        if let Some(Effect::Call { then, .. }) = effects.first_mut() {
            *then = Then::Undone(undo);
        }
        effects
    }

    /// Shows a refusal. If it protects files, asks whether to go on; the first choice leaves them.
    pub(super) fn undo_refused(&mut self, undo: &Undo, error: &ClientError) {
        self.fail(error);
        if !OVERRIDABLE.contains(&error.code()) {
            return;
        }
        let (title, go_on) = match undo.route {
            "revert" => ("Take it back anyway?", "take it back"),
            _ => ("Bring it back anyway?", "bring it back"),
        };
        let items = vec![
            Item::new("", "leave the files as they are", ""),
            Item::new(FORCE, go_on, "overwrite the files that are named above"),
        ];
        self.refused_undo = Some(undo.clone());
        self.picker = Some(Picker::new(ListKind::ForceUndo, title, items));
    }

    /// Goes on with the refused request if that was chosen.
    pub(super) fn force_undo(&mut self, choice: &str) -> Vec<Effect> {
        match self.refused_undo.take() {
            Some(mut undo) if choice == FORCE => {
                undo.body["force"] = json!(true);
                self.request_undo(undo)
            }
            _ => Vec::new(),
        }
    }
}
